"""The rules of the queue as jobs on a connection: what becomes ready, what is due, who holds it, how it ends.

Every function here runs inside one transaction of the writer (`find_due` and the counts also on the reader) and never
commits, sleeps or asks a clock. Two rules carry the rest:

- one user, one live lease: what a user said is learnt in order, and two workers never plan for the same user;
- a window keeps its turns and its id from its first lease to its last. While it is leased or waits for a retry, later
  turns of *its session* wait behind it; other sessions of the user go on, and a dead window holds up nobody. Only what
  the user asks of memory, to forget or to remember, goes past a window that waits for its time, with turns before it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from memory.adapters.sql.turns_rows import TURN_COLUMNS, turn_of
from memory.adapters.turn_rules import REASON_CHARACTERS_MAX, TOKEN_BYTES, WINDOW_BYTES_MAX, Holder, window_id_of
from memory.errors import Conflict
from memory.ports import LearnDue, Lease


@dataclass(frozen=True, slots=True)
class DueWork:
    """The next work: a window that was leased before, or (window_id "") the ready turns of a session up to
    `last_seq`.
    """

    window_id: str
    user_id: str
    session_id: str
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class ReadyTurn:
    """The data of a turn needed to put it into a window. `size`: bytes of messages and answer."""

    seq: int
    id: str
    finished_at: float
    size: int


def make_ready(connection: sqlite3.Connection, seq: int, user_id: str, session_id: str, finished_at: float) -> None:
    """A turn has ended and will be learnt: add it to its session."""
    connection.execute(
        """
        INSERT INTO ready_sessions
            (user_id, session_id, first_seq, turns, first_finished_at, last_finished_at, bytes)
        SELECT ?1, ?2, ?3, 1, ?4, ?4, length(messages) + length(answer) FROM turns WHERE seq = ?3
        ON CONFLICT DO UPDATE SET
            first_seq = min(first_seq, excluded.first_seq),
            turns = turns + 1,
            bytes = bytes + excluded.bytes,
            first_finished_at = min(first_finished_at, excluded.first_finished_at),
            last_finished_at = max(last_finished_at, excluded.last_finished_at)
        """,
        (user_id, session_id, seq, finished_at),
    )


def find_due(connection: sqlite3.Connection, *, now: float, due: LearnDue) -> DueWork | None:
    """Urgent turns, else the oldest due window or session, of a user without a live lease. Changes nothing."""
    urgent = _due_session(connection, _URGENT, {"now": now}) or _due_session(connection, _ASKED, {"now": now})
    if urgent is not None:
        return DueWork(*urgent)
    limits = {
        "now": now,
        "turns": due.turns_at_once,
        "idle": due.idle_seconds,
        "bytes": None if due.tokens_at_once is None else due.tokens_at_once * TOKEN_BYTES,
    }
    found = [row for row in (_due_window(connection, now), _due_session(connection, _GATHERED, limits)) if row]
    return min((DueWork(*row) for row in found), key=lambda work: work.first_seq, default=None)


_Row: TypeAlias = tuple[str, str, str, int, int]
_URGENT = """
    SELECT '', user_id, session_id, first_seq, urgent_seq FROM ready_sessions AS mine
    WHERE first_seq <= urgent_seq
"""
_ASKED = f"{_URGENT} AND first_seq <= asked_seq"
_GATHERED = """
    SELECT '', user_id, session_id, first_seq, 9223372036854775807 FROM ready_sessions AS mine
    WHERE (turns >= :turns OR :idle <= 0 OR last_finished_at <= :now - :idle OR bytes >= :bytes)
"""


def _due_window(connection: sqlite3.Connection, now: float) -> _Row | None:
    row: _Row | None = connection.execute(
        """
        SELECT id, user_id, session_id, first_seq, 9223372036854775807 FROM windows AS mine
        WHERE state IN ('leased', 'waiting') AND due_at <= :now
          AND NOT EXISTS (SELECT 1 FROM windows WHERE user_id = mine.user_id AND state = 'leased' AND due_at > :now)
          AND (is_asked OR NOT EXISTS (
                  SELECT 1 FROM windows WHERE user_id = mine.user_id AND state IN ('leased', 'waiting')
                  AND session_id = mine.session_id AND first_seq < mine.first_seq))
        ORDER BY first_seq LIMIT 1
        """,
        {"now": now},
    ).fetchone()
    return row


def _due_session(connection: sqlite3.Connection, choice: str, limits: Mapping[str, float | None]) -> _Row | None:
    """The oldest session of the choice whose user nobody works for, and that has no window on its way.

    For what is asked of memory, a window that waits for its time is not on its way.
    """
    on_its_way = "state IN ('leased', 'waiting')" + (" AND due_at <= :now" if choice is _ASKED else "")
    row: _Row | None = connection.execute(
        f"""{choice}
          AND NOT EXISTS (SELECT 1 FROM windows WHERE user_id = mine.user_id AND state = 'leased' AND due_at > :now)
          AND NOT EXISTS (SELECT 1 FROM windows WHERE user_id = mine.user_id AND {on_its_way}
                          AND session_id = mine.session_id)
        ORDER BY first_seq LIMIT 1
        """,  # noqa: S608  # our own constants
        limits,
    ).fetchone()
    return row


def take(connection: sqlite3.Connection, *, now: float, due: LearnDue, holder: Holder) -> Lease | None:
    """Lease the next due work; ready turns become a window that does not change any more."""
    work = find_due(connection, now=now, due=due)
    if work is None:
        return None
    window_id = work.window_id or _fix_window(connection, work, due.batch_turns_max)
    connection.execute(
        "UPDATE windows SET state = 'leased', due_at = ?, attempt = attempt + 1, token = ?, owner = ? WHERE id = ?",
        (holder.until, holder.token, holder.owner, window_id),
    )
    attempt, *others = connection.execute(
        "SELECT attempt, plan, first_finished_at, outages, outage_since FROM windows WHERE id = ?", (window_id,)
    ).fetchone()
    turns = tuple(turn_of(row) for row in _window_rows(connection, window_id))
    return Lease(window_id, work.user_id, work.session_id, turns, attempt, holder.token, *others)


def _fix_window(connection: sqlite3.Connection, work: DueWork, turns_max: int) -> str:
    rows = connection.execute(
        """
        SELECT seq, id, finished_at, length(messages) + length(answer) FROM turns
        WHERE stage IN ('open', 'ready', 'window') AND stage = 'ready' AND user_id = ? AND session_id = ?
          AND seq <= ?
        ORDER BY seq LIMIT ?
        """,
        (work.user_id, work.session_id, work.last_seq, max(1, turns_max)),
    ).fetchall()
    chosen: list[ReadyTurn] = []
    room = WINDOW_BYTES_MAX
    for row in rows:
        turn = ReadyTurn(*row)
        room -= turn.size
        if chosen and room < 0:
            break
        chosen.append(turn)
    return make_window(connection, work.user_id, work.session_id, chosen)


def make_window(connection: sqlite3.Connection, user_id: str, session_id: str, turns: Sequence[ReadyTurn]) -> str:
    """Make one window of these ready turns, in order; returns its id. It has no lease yet."""
    window_id = window_id_of(user_id, session_id, (turn.id for turn in turns))
    connection.execute(
        """
        INSERT INTO windows
            (id, user_id, session_id, first_seq, turns, first_finished_at, state, due_at, attempt, reason, is_asked)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'waiting', 0, 0, '', coalesce(
            (SELECT asked_seq >= ?4 FROM ready_sessions WHERE user_id = ?2 AND session_id = ?3), 0))
        """,
        (window_id, user_id, session_id, turns[0].seq, len(turns), min(turn.finished_at for turn in turns)),
    )
    connection.executemany(
        "UPDATE turns SET stage = 'window', window_id = ? WHERE seq = ?", [(window_id, turn.seq) for turn in turns]
    )
    recount_session(connection, user_id, session_id, turns=len(turns), size=sum(turn.size for turn in turns))
    return window_id


def recount_session(connection: sqlite3.Connection, user_id: str, session_id: str, *, turns: int, size: int) -> None:
    """Subtract turns that are no longer ready, and their bytes, from a session's counts."""
    first = connection.execute(
        """
        SELECT seq, finished_at FROM turns
        WHERE stage IN ('open', 'ready', 'window') AND stage = 'ready' AND user_id = ? AND session_id = ?
        ORDER BY seq LIMIT 1
        """,
        (user_id, session_id),
    ).fetchone()
    if first is None:
        connection.execute("DELETE FROM ready_sessions WHERE user_id = ? AND session_id = ?", (user_id, session_id))
        return
    connection.execute(
        """
        UPDATE ready_sessions SET turns = turns - ?, bytes = bytes - ?, first_seq = ?, first_finished_at = ?
        WHERE user_id = ? AND session_id = ?
        """,
        (turns, size, *first, user_id, session_id),
    )


def _window_rows(connection: sqlite3.Connection, window_id: str) -> list[tuple[object, ...]]:
    return connection.execute(
        f"SELECT {TURN_COLUMNS} FROM turns WHERE stage = 'window' AND window_id = ? ORDER BY seq",  # noqa: S608  # our own constant
        (window_id,),
    ).fetchall()


def extend(connection: sqlite3.Connection, lease: Lease, until: float) -> None:
    """An expired lease can be extended only if no other worker has started for that user."""
    assert_held(connection, lease)
    rival = connection.execute(
        """
        SELECT 1 FROM windows WHERE user_id = ?1 AND state = 'leased' AND id != ?2
        AND due_at > (SELECT due_at FROM windows WHERE id = ?2)
        """,
        (lease.user_id, lease.window_id),
    ).fetchone()
    if rival is not None:
        raise Conflict("the lease has ended and another worker has begun to work for this user")
    connection.execute("UPDATE windows SET due_at = ? WHERE id = ?", (until, lease.window_id))


def save_plan(connection: sqlite3.Connection, lease: Lease, plan: bytes) -> None:
    assert_held(connection, lease)
    connection.execute("UPDATE windows SET plan = ? WHERE id = ?", (plan, lease.window_id))


def acknowledge(connection: sqlite3.Connection, lease: Lease) -> None:
    assert_held(connection, lease)
    end_window(connection, lease.window_id, stage="learnt")


def end_window(connection: sqlite3.Connection, window_id: str, *, stage: str) -> None:
    """Delete the window and its plan; its turns stay in the record with its id."""
    connection.execute("UPDATE turns SET stage = ? WHERE stage = 'window' AND window_id = ?", (stage, window_id))
    connection.execute("DELETE FROM windows WHERE id = ?", (window_id,))


def give_back(
    connection: sqlite3.Connection, lease: Lease, *, due_at: float, reason: str, outage_since: float | None
) -> None:
    assert_held(connection, lease)
    connection.execute(
        """
        UPDATE windows SET state = 'waiting', due_at = ?1, reason = ?2, token = NULL, owner = NULL,
            attempt = attempt - (?3 IS NOT NULL), outages = iif(?3 IS NULL, 0, outages + 1), outage_since = ?3
        WHERE id = ?4
        """,
        (due_at, reason[:REASON_CHARACTERS_MAX], outage_since, lease.window_id),
    )


def take_back(connection: sqlite3.Connection, token: str) -> None:
    """Undo a `take` whose caller left before it got the result."""
    connection.execute(
        """
        UPDATE windows SET state = 'waiting', due_at = 0, attempt = attempt - 1, token = NULL, owner = NULL
        WHERE token = ?
        """,
        (token,),
    )


def move_to_dead_letters(connection: sqlite3.Connection, lease: Lease, *, now: float, reason: str) -> None:
    assert_held(connection, lease)
    connection.execute(
        "UPDATE windows SET state = 'dead', buried_at = ?, reason = ?, token = NULL, owner = NULL WHERE id = ?",
        (now, reason[:REASON_CHARACTERS_MAX], lease.window_id),
    )


def assert_held(connection: sqlite3.Connection, lease: Lease) -> None:
    held = connection.execute(
        "SELECT 1 FROM windows WHERE id = ? AND state = 'leased' AND token = ?", (lease.window_id, lease.token)
    ).fetchone()
    if held is None:
        raise Conflict("the lease is no longer ours")


def turn_ids_of(connection: sqlite3.Connection, window_id: str) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT id FROM turns WHERE stage = 'window' AND window_id = ? ORDER BY seq", (window_id,)
    ).fetchall()
    return tuple(turn_id for (turn_id,) in rows)
