"""Changes to the queue from outside of learning: processes die, users delete, operators inspect and decide. Urgency,
and load shedding of waiting turns; and what the holder of a lease reads beside its turns. Jobs on a connection.

See `turns_queue` for their rules. None of them takes a lease or ends one as learnt. Examining a turn only changes when
its session is due and its value: examining it twice, or never, loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from memory.adapters.sql import turn_effects
from memory.adapters.sql.statements import Connection, Value, listed, statements
from memory.adapters.sql.turns_queue import (
    ReadyTurn,
    assert_held,
    end_window,
    make_ready,
    make_window,
    recount_session,
    window_id_of,
)
from memory.adapters.sql.turns_rows import fitting, turn_of
from memory.model import Turn, TurnStatus, Urgency
from memory.ports import Backlog, DeadLetter, ForgetRequestTurn, FreshTurn, Lease, QueueDepth
from memory.ports.paging import batched

SQL = statements("turns_upkeep")

GIVEN_UP = ("dead", "shed")  # states of a window that only operators can revert


def holders(connection: Connection) -> set[str]:
    """Owners of open turns or leases."""
    return set(SQL.owners_of_work.column(connection))


def release_dead(connection: Connection, owners: Collection[str], *, now: float) -> int:
    """Open turns of dead owners become unknown and ready, and their leases end now. Returns the number of turns."""
    found = 0
    for owner in owners:
        found += make_unknown(connection, owner=owner, now=now)
        SQL.end_leases(connection, now=now, owner=owner)
    return found


def make_unknown(connection: Connection, *, now: float, owner: str = "", opened_before: float = 0.0) -> int:
    """Open turns of this owner, and those that anybody opened before, become unknown and ready. Returns how many."""
    rows = SQL.opened_by(connection, owner=owner, opened_before=opened_before).fetchall()
    SQL.make_unknown(connection, now=now, owner=owner, opened_before=opened_before)
    for seq, user_id, session_id, stage in rows:
        turn_effects.turn_ended(connection, user_id, session_id, at=now)
        if stage == "open":
            make_ready(connection, seq, user_id, session_id, now)
    return len(rows)


def dead_letters(connection: Connection, *, limit: int) -> list[DeadLetter]:
    found = []
    for window_id, user_id, session_id, *others in SQL.given_up_windows(connection, limit=limit).fetchall():
        turn_ids = tuple(SQL.ids_of_window.column(connection, window_id=window_id))
        found.append(DeadLetter(window_id, user_id, session_id, turn_ids, *others))
    return found


def replay(connection: Connection, window_ids: Collection[str]) -> int:
    """Keeps the plan: a window that was partly applied must be completed with the same plan."""
    return SQL.replay_windows(connection, window_ids=listed(window_ids)).rowcount


def drop(connection: Connection, window_ids: Collection[str]) -> int:
    found = SQL.given_up_among.column(connection, window_ids=listed(window_ids))
    for window_id in found:
        end_window(connection, window_id, stage="dropped")
    return len(found)


def make_due_now(connection: Connection, user_id: str, *, session_id: str = "") -> None:
    SQL.make_urgent(connection, user_id=user_id, session_id=session_id)


def withdraw(
    connection: Connection,
    user_id: str,
    *,
    project_id: str = "",
    opened_before: float,
    only: Collection[str] = (),
    spare: Collection[str] = (),
) -> int:
    """Includes open turns: they are completed for the record, but not learnt."""
    chosen: dict[str, Value] = {
        "user_id": user_id,
        "project_id": project_id,
        "opened_before": opened_before,
        "only": listed(only),
        "spare": listed(spare),
    }
    rows = SQL.unlearnt_turns(connection, **chosen).fetchall()
    take_out(connection, user_id, rows, stage="withdrawn")
    # Turns of abandoned branches that were never learnt must not be learnt if the client resumes the branch.
    abandoned = SQL.withdraw_abandoned.column(connection, **chosen)
    turn_effects.sessions_changed(connection, user_id, set(abandoned))
    return len(rows) + len(abandoned)


QueuedTurn: TypeAlias = tuple[int, str, str, str | None, int]
"""seq, session id, stage, window id and bytes of a turn that is not learnt yet."""


def take_out(connection: Connection, user_id: str, rows: Sequence[QueuedTurn], *, stage: str) -> None:
    """Take these open, ready or leased turns out of the queue, to `stage`."""
    SQL.take_out_turn.many(connection, [{"stage": stage, "seq": seq} for seq, *_ in rows])
    turn_effects.sessions_changed(connection, user_id, {session_id for _, session_id, *_ in rows})
    taken: dict[str, list[int]] = {}
    for _, session_id, was, _, size in rows:
        if was == "ready":
            taken.setdefault(session_id, []).append(size)
    for session_id, sizes in taken.items():
        recount_session(connection, user_id, session_id, turns=len(sizes), size=sum(sizes))
    for window_id in sorted({window_id for _, _, was, window_id, _ in rows if was == "window" and window_id}):
        _renew_window(connection, window_id)


def _renew_window(connection: Connection, window_id: str) -> None:
    """Some of its turns were withdrawn: the rest becomes a window with another id, without a plan.

    The old plan may contain what was just deleted; the holder of the old lease gets a `Conflict`.
    """
    left = SQL.left_in_window(connection, window_id=window_id).fetchall()
    if not left:
        SQL.delete_window(connection, window_id=window_id)
        return
    user_id, session_id = SQL.user_of_window(connection, window_id=window_id).fetchone()
    renewed = window_id_of(user_id, session_id, (turn_id for _, turn_id, _ in left))
    SQL.rename_in_turns(connection, renewed=renewed, window_id=window_id)
    SQL.renew_window(
        connection,
        renewed=renewed,
        first_seq=left[0][0],
        turns=len(left),
        first_finished_at=min(at for *_, at in left),
        window_id=window_id,
    )


def backlog(connection: Connection, user_id: str, session_id: str, *, opened_before: float, now: float) -> Backlog:
    """A window whose retry is due by `now` is pending, not waiting; so is a branch whose memories are to be changed."""
    failed, waiting, pending = SQL.count_unlearnt(
        connection, user_id=user_id, session_id=session_id, opened_before=opened_before, now=now
    ).fetchone()
    (shifting,) = SQL.count_unsettled(connection, user_id=user_id, session_id=session_id).fetchone()
    return Backlog(pending=int(pending) + int(shifting), waiting=int(waiting), failed=int(failed))


def depth(connection: Connection, *, now: float) -> QueueDepth:
    """Reads the small tables only, so that the cost does not depend on the length of the record."""
    opened = SQL.count_opened(connection).fetchone()[0]
    ready, oldest_ready = SQL.ready_depth(connection).fetchone()
    rows = SQL.window_depth(connection).fetchall()
    turns = {state: int(count) for state, count, _ in rows}
    finished = [at for state, _, at in rows if state not in GIVEN_UP] + ([] if oldest_ready is None else [oldest_ready])
    return QueueDepth(
        opened=opened,
        due=int(ready),
        leased=turns.get("leased", 0),
        retrying=turns.get("waiting", 0),
        dead=turns.get("dead", 0),
        oldest_seconds=max(0.0, now - min(finished, default=now)),
        shed=turns.get("shed", 0),
    )


LOOK_BYTES_MAX = 8 << 20  # of turns read at a time; a single one is always read, however large
EARLIER_TURNS = 3  # of the waiting session, with which a new turn is compared
EARLIER_BYTES_MAX = 64 << 10  # larger earlier turns are left out: pasted text says little about the topic
SHED_REASON = "shed: too many turns were waiting to be learnt, and these promised the least"


def unexamined(connection: Connection, *, limit: int) -> list[FreshTurn]:
    """The oldest unmarked turns, each with those right before it. Reads one index row if there are none."""
    rows = SQL.unexamined_turns(connection, limit=limit).fetchall()
    return [_fresh(connection, seq) for seq, _ in fitting(rows, lambda row: int(row[1]), bytes_max=LOOK_BYTES_MAX)]


def _fresh(connection: Connection, seq: int) -> FreshTurn:
    turn = _turn(connection, seq)
    before = SQL.ready_before(
        connection,
        user_id=turn.scope.user_id,
        session_id=turn.scope.session_id,
        seq=seq,
        earlier_bytes_max=EARLIER_BYTES_MAX,
        earlier_turns=EARLIER_TURNS,
    ).fetchall()
    return FreshTurn(turn, tuple(_turn(connection, earlier) for (earlier,) in reversed(before)))


def _turn(connection: Connection, seq: int) -> Turn:
    return turn_of(SQL.turn_at(connection, seq=seq).fetchone())


def mark(connection: Connection, urgencies: Mapping[str, Urgency]) -> None:
    for turn_id, urgency in urgencies.items():
        row = SQL.unexamined_turn(connection, turn_id=turn_id).fetchone()
        if row is None:
            continue
        seq, user_id, session_id = row
        SQL.set_worth(connection, worth=urgency.worth, is_explicit=urgency.is_explicit, seq=seq)
        urgent_seq = seq if urgency.is_explicit else seq - 1 if urgency.ends_topic else 0
        asked_seq = seq if urgency.asks_memory else 0
        SQL.raise_urgency(
            connection, urgent_seq=urgent_seq, asked_seq=asked_seq, user_id=user_id, session_id=session_id
        )


@dataclass(frozen=True, slots=True)
class _Sheddable:
    """Turns that would form one window, with their value."""

    user_id: str
    session_id: str
    turns: tuple[ReadyTurn, ...]
    worth: float


def shed(connection: Connection, *, now: float, keep: int, window_turns: int) -> int:
    """Reads a few numbers of every ready turn if the queue is too long, otherwise two sums."""
    (ready,) = SQL.count_ready(connection).fetchone()
    (begun,) = SQL.count_in_windows(connection).fetchone()
    surplus = int(ready + begun) - keep  # of finished turns that are neither learnt nor given up
    if surplus <= 0:
        return 0
    taken = 0
    for window in sorted(_sheddable(connection, window_turns), key=lambda w: (w.worth, w.turns[0].finished_at)):
        if taken >= surplus:
            break
        window_id = make_window(connection, window.user_id, window.session_id, window.turns)
        SQL.shed_window(connection, now=now, shed_reason=SHED_REASON, window_id=window_id)
        taken += len(window.turns)
    return taken


def _sheddable(connection: Connection, window_turns: int) -> Iterator[_Sheddable]:
    """The windows as they would be leased, without those with an explicit or an unexamined turn."""
    rows = SQL.ready_turns(connection)
    for (user_id, session_id), of_session in groupby(rows, key=lambda row: (row[0], row[1])):
        for window in batched(list(of_session), max(1, window_turns)):
            worths = [worth for *_, worth, _ in window]
            if None in worths or any(is_explicit for *_, is_explicit in window):
                continue
            yield _Sheddable(user_id, session_id, tuple(ReadyTurn(*row[2:6]) for row in window), max(worths))


def context(connection: Connection, lease: Lease, *, limit: int) -> list[Turn]:
    """Turns that teach, before those of the lease."""
    rows = SQL.learnt_before(
        connection, user_id=lease.user_id, session_id=lease.session_id, turn_id=lease.turns[0].id, limit=limit
    ).fetchall()
    return [turn_of(row) for row in reversed(rows)]


def failed_turns(connection: Connection, lease: Lease, *, limit: int) -> list[Turn]:
    """Turns that never do, up to the last of the lease."""
    rows = SQL.failed_before(
        connection, user_id=lease.user_id, session_id=lease.session_id, turn_id=lease.turns[-1].id, limit=limit
    ).fetchall()
    return [turn_of(row) for row in reversed(rows)]


def mark_forget_requests(connection: Connection, lease: Lease, claims: Mapping[str, bytes]) -> None:
    assert_held(connection, lease)
    SQL.set_order.many(connection, [{"encoded": encoded, "turn_id": turn_id} for turn_id, encoded in claims.items()])


def forget_requests_for(connection: Connection, lease: Lease, *, limit: int) -> list[ForgetRequestTurn]:
    """Recorded after the window began; also before it in its session, or if a turn of it was filled in and said
    earlier.
    """
    filled_in = [turn.at for turn in lease.turns if turn.status is TurnStatus.FILLED_IN]
    rows = SQL.orders_for(
        connection,
        user_id=lease.user_id,
        session_id=lease.session_id,
        window_id=lease.window_id,
        id=lease.turns[0].id,
        filled_in_at=min(filled_in, default=None),
        limit=limit,
    ).fetchall()
    return [ForgetRequestTurn(turn_of(tuple(row)), claims or b"", bool(is_since)) for *row, claims, is_since in rows]
