"""Urgency and load shedding of waiting turns: jobs on a connection.

See `turns_queue` for their rules. Examining a turn only changes when its session is due and its value: examining it
twice, or never, loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.turns_queue import ReadyTurn, assert_held, make_window
from memory.adapters.sql.turns_rows import turn_of
from memory.adapters.turn_rules import EARLIER_BYTES_MAX, EARLIER_TURNS, LOOK_BYTES_MAX, SHED_REASON
from memory.model import Turn, TurnStatus, Urgency
from memory.ports import ForgetRequestTurn, FreshTurn, Lease

SQL = statements("turns_triggers")


def unexamined(connection: Connection, *, limit: int) -> list[FreshTurn]:
    """The oldest unmarked turns, each with those right before it. Reads one index row if there are none."""
    chosen: list[int] = []
    room = LOOK_BYTES_MAX
    for seq, size in SQL.unexamined_turns(connection, limit=limit):
        room -= size
        if chosen and room < 0:
            break
        chosen.append(seq)
    read: dict[int, Turn] = {}
    return [_fresh(connection, seq, read) for seq in chosen]


def _fresh(connection: Connection, seq: int, read: dict[int, Turn]) -> FreshTurn:
    """`read`: the turns read so far, so that each turn of a session is read once."""
    turn = _turn(connection, seq, read)
    before = SQL.ready_before(
        connection,
        user_id=turn.scope.user_id,
        session_id=turn.scope.session_id,
        seq=seq,
        earlier_bytes_max=EARLIER_BYTES_MAX,
        earlier_turns=EARLIER_TURNS,
    ).fetchall()
    return FreshTurn(turn, tuple(_turn(connection, earlier, read) for (earlier,) in reversed(before)))


def _turn(connection: Connection, seq: int, read: dict[int, Turn]) -> Turn:
    if seq not in read:
        row = SQL.turn_at(connection, seq=seq).fetchone()  # our own constant
        read[seq] = turn_of(row)
    return read[seq]


def mark(connection: Connection, urgencies: Mapping[str, Urgency]) -> None:
    for turn_id, urgency in urgencies.items():
        row = SQL.unexamined_turn(connection, turn_id=turn_id).fetchone()
        if row is None:
            continue
        seq, user_id, session_id = row
        SQL.set_worth(connection, worth=urgency.worth, is_explicit=urgency.is_explicit, seq=seq)
        urgent_seq = seq if urgency.is_explicit else seq - 1 if urgency.ends_topic else 0
        asked_seq = seq if urgency.asks_memory else 0
        SQL.make_urgent(connection, urgent_seq=urgent_seq, asked_seq=asked_seq, user_id=user_id, session_id=session_id)


@dataclass(frozen=True, slots=True)
class _Sheddable:
    """Turns that would form one window, with their value."""

    user_id: str
    session_id: str
    turns: tuple[ReadyTurn, ...]
    worth: float


def shed(connection: Connection, *, now: float, keep: int, window_turns: int) -> int:
    """Reads a few numbers of every ready turn if the queue is too long, otherwise two sums."""
    surplus = waiting(connection) - keep
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


def waiting(connection: Connection) -> int:
    """Finished turns that are neither learnt nor given up."""
    (ready,) = SQL.count_ready(connection).fetchone()
    (begun,) = SQL.count_in_windows(connection).fetchone()
    return int(ready + begun)


def _sheddable(connection: Connection, window_turns: int) -> Iterator[_Sheddable]:
    """The windows as they would be leased, without those with an explicit or an unexamined turn."""
    rows = SQL.ready_turns(connection)
    for (user_id, session_id), of_session in groupby(rows, key=lambda row: (row[0], row[1])):
        ready = list(of_session)
        for start in range(0, len(ready), max(1, window_turns)):
            window = ready[start : start + max(1, window_turns)]
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


def forget_requests_after(connection: Connection, lease: Lease, *, limit: int) -> list[ForgetRequestTurn]:
    """Recorded after the window began; also before it, if a turn of the window was filled in and said earlier."""
    filled_in = [turn.at for turn in lease.turns if turn.status is TurnStatus.FILLED_IN]
    rows = SQL.orders_after(
        connection,
        user_id=lease.user_id,
        window_id=lease.window_id,
        id=lease.turns[0].id,
        filled_in_at=min(filled_in, default=None),
        limit=limit,
    ).fetchall()
    return [ForgetRequestTurn(turn_of(row[:-1]), row[-1] or b"") for row in reversed(rows)]
