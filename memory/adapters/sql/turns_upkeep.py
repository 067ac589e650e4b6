"""Changes to the queue from outside of learning: processes die, users delete, operators inspect and decide.

Jobs on a connection; see `turns_queue` for their rules. None of them takes a lease or ends one as learnt.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from memory.adapters.sql import turn_effects
from memory.adapters.sql.statements import Connection, Value, listed, statements
from memory.adapters.sql.turns_queue import end_window, make_ready, recount_session, turn_ids_of
from memory.adapters.turn_rules import window_id_of
from memory.ports import Backlog, DeadLetter, QueueDepth

SQL = statements("turns_upkeep")

GIVEN_UP = ("dead", "shed")  # states of a window that only operators can revert


def holders(connection: Connection) -> set[str]:
    """Owners of open turns or leases."""
    rows = SQL.owners_of_work(connection).fetchall()
    return {owner for (owner,) in rows}


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
    rows = SQL.given_up_windows(connection, limit=limit).fetchall()
    return [
        DeadLetter(window_id, user_id, session_id, turn_ids_of(connection, window_id), reason, buried_at, attempts)
        for window_id, user_id, session_id, reason, buried_at, attempts in rows
    ]


def replay(connection: Connection, window_ids: Collection[str]) -> int:
    """Keeps the plan: a window that was partly applied must be completed with the same plan."""
    return SQL.replay_windows(connection, window_ids=listed(window_ids)).rowcount


def drop(connection: Connection, window_ids: Collection[str]) -> int:
    found = SQL.given_up_among(connection, window_ids=listed(window_ids)).fetchall()
    for (window_id,) in found:
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
    abandoned = SQL.withdraw_abandoned(connection, **chosen).fetchall()
    turn_effects.sessions_changed(connection, user_id, {session_id for (session_id,) in abandoned})
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
