"""Urgency and load shedding of waiting turns: jobs on a connection.

See `turns_queue` for their rules. Examining a turn only changes when its session is due and its value: examining it
twice, or never, loses nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from memory.adapters.sql.turns_queue import ReadyTurn, assert_held, make_window
from memory.adapters.sql.turns_rows import TURN_COLUMNS, turn_of
from memory.adapters.turn_rules import EARLIER_BYTES_MAX, EARLIER_TURNS, LOOK_BYTES_MAX, SHED_REASON
from memory.model import Turn, TurnStatus, Urgency
from memory.ports import ForgetRequestTurn, FreshTurn, Lease


def unexamined(connection: sqlite3.Connection, limit: int) -> list[FreshTurn]:
    """The oldest unmarked turns, each with those right before it. Reads one index row if there are none."""
    chosen: list[int] = []
    room = LOOK_BYTES_MAX
    for seq, size in connection.execute(
        """
        SELECT seq, length(messages) + length(answer) FROM turns
        WHERE stage = 'ready' AND worth IS NULL ORDER BY seq LIMIT ?
        """,
        (limit,),
    ):
        room -= size
        if chosen and room < 0:
            break
        chosen.append(seq)
    read: dict[int, Turn] = {}
    return [_fresh(connection, seq, read) for seq in chosen]


def _fresh(connection: sqlite3.Connection, seq: int, read: dict[int, Turn]) -> FreshTurn:
    """`read`: the turns read so far, so that each turn of a session is read once."""
    turn = _turn(connection, seq, read)
    before = connection.execute(
        """
        SELECT seq FROM turns
        WHERE stage IN ('open', 'ready', 'window') AND stage = 'ready' AND user_id = ? AND session_id = ? AND seq < ?
          AND length(messages) + length(answer) <= ?
        ORDER BY seq DESC LIMIT ?
        """,
        (turn.scope.user_id, turn.scope.session_id, seq, EARLIER_BYTES_MAX, EARLIER_TURNS),
    ).fetchall()
    return FreshTurn(turn, tuple(_turn(connection, earlier, read) for (earlier,) in reversed(before)))


def _turn(connection: sqlite3.Connection, seq: int, read: dict[int, Turn]) -> Turn:
    if seq not in read:
        row = connection.execute(f"SELECT {TURN_COLUMNS} FROM turns WHERE seq = ?", (seq,)).fetchone()  # noqa: S608  # our own constant
        read[seq] = turn_of(row)
    return read[seq]


def mark(connection: sqlite3.Connection, urgencies: Mapping[str, Urgency]) -> None:
    for turn_id, urgency in urgencies.items():
        row = connection.execute(
            "SELECT seq, user_id, session_id FROM turns WHERE id = ? AND stage = 'ready' AND worth IS NULL", (turn_id,)
        ).fetchone()
        if row is None:
            continue
        seq, user_id, session_id = row
        connection.execute(
            "UPDATE turns SET worth = ?, is_explicit = ? WHERE seq = ?", (urgency.worth, urgency.is_explicit, seq)
        )
        urgent_seq = seq if urgency.is_explicit else seq - 1 if urgency.ends_topic else 0
        asked_seq = seq if urgency.asks_memory else 0
        connection.execute(
            """
            UPDATE ready_sessions SET urgent_seq = max(urgent_seq, ?), asked_seq = max(asked_seq, ?)
            WHERE user_id = ? AND session_id = ?
            """,
            (urgent_seq, asked_seq, user_id, session_id),
        )


@dataclass(frozen=True, slots=True)
class _Sheddable:
    """Turns that would form one window, with their value."""

    user_id: str
    session_id: str
    turns: tuple[ReadyTurn, ...]
    worth: float


def shed(connection: sqlite3.Connection, *, now: float, keep: int, window_turns: int) -> int:
    """Reads a few numbers of every ready turn if the queue is too long, otherwise two sums."""
    surplus = waiting(connection) - keep
    if surplus <= 0:
        return 0
    taken = 0
    for window in sorted(_sheddable(connection, window_turns), key=lambda w: (w.worth, w.turns[0].finished_at)):
        if taken >= surplus:
            break
        window_id = make_window(connection, window.user_id, window.session_id, window.turns)
        connection.execute(
            "UPDATE windows SET state = 'shed', buried_at = ?, reason = ? WHERE id = ?", (now, SHED_REASON, window_id)
        )
        taken += len(window.turns)
    return taken


def waiting(connection: sqlite3.Connection) -> int:
    """Finished turns that are neither learnt nor given up."""
    (ready,) = connection.execute("SELECT total(turns) FROM ready_sessions").fetchone()
    (begun,) = connection.execute("SELECT total(turns) FROM windows WHERE state IN ('leased', 'waiting')").fetchone()
    return int(ready + begun)


def _sheddable(connection: sqlite3.Connection, window_turns: int) -> Iterator[_Sheddable]:
    """The windows as they would be leased, without those with an explicit or an unexamined turn."""
    rows = connection.execute(
        """
        SELECT user_id, session_id, seq, id, finished_at, length(messages) + length(answer), worth, is_explicit
        FROM turns WHERE stage IN ('open', 'ready', 'window') AND stage = 'ready'
        ORDER BY user_id, session_id, seq
        """
    )
    for (user_id, session_id), of_session in groupby(rows, key=lambda row: (row[0], row[1])):
        ready = list(of_session)
        for start in range(0, len(ready), max(1, window_turns)):
            window = ready[start : start + max(1, window_turns)]
            worths = [worth for *_, worth, _ in window]
            if None in worths or any(is_explicit for *_, is_explicit in window):
                continue
            yield _Sheddable(user_id, session_id, tuple(ReadyTurn(*row[2:6]) for row in window), max(worths))


def context(connection: sqlite3.Connection, *, lease: Lease, limit: int, statuses: Sequence[str]) -> list[Turn]:
    """Statuses: of turns that teach."""
    return _of_session_before(connection, lease, lease.turns[0].id, limit=limit, statuses=statuses)


def failed_turns(connection: sqlite3.Connection, *, lease: Lease, limit: int, statuses: Sequence[str]) -> list[Turn]:
    """Statuses: of turns that never do."""
    return _of_session_before(connection, lease, lease.turns[-1].id, limit=limit, statuses=statuses)


def _of_session_before(
    connection: sqlite3.Connection, lease: Lease, turn_id: str, *, limit: int, statuses: Sequence[str]
) -> list[Turn]:
    rows = connection.execute(
        f"""
        SELECT {TURN_COLUMNS} FROM turns
        WHERE user_id = ? AND session_id = ? AND seq < (SELECT seq FROM turns WHERE id = ?)
          AND stage NOT IN ('abandoned', 'withdrawn') AND status IN ({", ".join("?" * len(statuses))})
        ORDER BY seq DESC LIMIT ?
        """,  # noqa: S608  # our own constants
        (lease.user_id, lease.session_id, turn_id, *statuses, limit),
    ).fetchall()
    return [turn_of(row) for row in reversed(rows)]


def mark_forget_requests(connection: sqlite3.Connection, lease: Lease, claims: Mapping[str, bytes]) -> None:
    assert_held(connection, lease)
    connection.executemany(
        "UPDATE turns SET is_order = 1, order_claims = ? WHERE id = ?",
        [(encoded, turn_id) for turn_id, encoded in claims.items()],
    )


def forget_requests_after(connection: sqlite3.Connection, lease: Lease, limit: int) -> list[ForgetRequestTurn]:
    """Recorded after the window began; also before it, if a turn of the window was filled in and said earlier."""
    filled_in = [turn.at for turn in lease.turns if turn.status is TurnStatus.FILLED_IN]
    rows = connection.execute(
        f"""
        SELECT {TURN_COLUMNS}, order_claims FROM turns
        WHERE user_id = ?1 AND is_order = 1 AND window_id IS NOT ?2
          AND (seq > (SELECT seq FROM turns WHERE id = ?3) OR said_at > ?4)
        ORDER BY seq DESC LIMIT ?5
        """,  # noqa: S608  # our own constant
        (lease.user_id, lease.window_id, lease.turns[0].id, min(filled_in, default=None), limit),
    ).fetchall()
    return [ForgetRequestTurn(turn_of(row[:-1]), row[-1]) for row in reversed(rows)]
