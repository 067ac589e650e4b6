"""Changes to the queue from outside of learning: processes die, users delete, operators inspect and decide.

Jobs on a connection; see `turns_queue` for their rules. None of them takes a lease or ends one as learnt.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import TypeAlias

from memory.adapters.sql.turns_queue import end_window, make_ready, recount_session, turn_ids_of
from memory.adapters.turn_rules import window_id_of
from memory.ports import Backlog, DeadLetter, QueueDepth

GIVEN_UP = ("dead", "shed")  # states of a window that only operators can revert


def holders(connection: sqlite3.Connection) -> set[str]:
    """Owners of open turns or leases."""
    rows = connection.execute(
        "SELECT owner FROM turns WHERE status = 'opened' UNION SELECT owner FROM windows WHERE state = 'leased'"
    ).fetchall()
    return {owner for (owner,) in rows}


def release_dead(connection: sqlite3.Connection, owners: Collection[str], *, now: float) -> int:
    """Open turns of dead owners become unknown and ready, and their leases end now. Returns the number of turns."""
    found = 0
    for owner in owners:
        rows = connection.execute(
            "SELECT seq, user_id, session_id, stage FROM turns WHERE status = 'opened' AND owner = ?", (owner,)
        ).fetchall()
        connection.execute(
            """
            UPDATE turns SET status = 'unknown', finished_at = ?1, stage = iif(stage = 'open', 'ready', stage)
            WHERE status = 'opened' AND owner = ?2
            """,
            (now, owner),
        )
        for seq, user_id, session_id, stage in rows:
            if stage == "open":
                make_ready(connection, seq, user_id, session_id, now)
        connection.execute(
            "UPDATE windows SET due_at = min(due_at, ?) WHERE state = 'leased' AND owner = ?", (now, owner)
        )
        found += len(rows)
    return found


def dead_letters(connection: sqlite3.Connection, limit: int) -> list[DeadLetter]:
    rows = connection.execute(
        """
        SELECT id, user_id, session_id, reason, buried_at, attempt + outages FROM windows
        WHERE state IN ('dead', 'shed') ORDER BY buried_at, first_seq LIMIT ?
        """,
        (limit,),
    ).fetchall()
    return [
        DeadLetter(window_id, user_id, session_id, turn_ids_of(connection, window_id), reason, buried_at, attempts)
        for window_id, user_id, session_id, reason, buried_at, attempts in rows
    ]


def replay(connection: sqlite3.Connection, window_ids: Collection[str]) -> int:
    """Keeps the plan: a window that was partly applied must be completed with the same plan."""
    return connection.execute(
        """
        UPDATE windows
        SET state = 'waiting', due_at = 0, attempt = 0, outages = 0, outage_since = NULL, buried_at = NULL
        WHERE state IN ('dead', 'shed') AND (?1 = '[]' OR id IN (SELECT value FROM json_each(?1)))
        """,
        (json.dumps(list(window_ids)),),
    ).rowcount


def drop(connection: sqlite3.Connection, window_ids: Collection[str]) -> int:
    found = connection.execute(
        "SELECT id FROM windows WHERE state IN ('dead', 'shed') AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(window_ids)),),
    ).fetchall()
    for (window_id,) in found:
        end_window(connection, window_id, stage="dropped")
    return len(found)


def make_due_now(connection: sqlite3.Connection, user_id: str, session_id: str) -> None:
    connection.execute(
        """
        UPDATE ready_sessions SET urgent_seq = max(urgent_seq, (
            SELECT max(seq) FROM turns
            WHERE stage IN ('open', 'ready', 'window') AND stage = 'ready'
              AND turns.user_id = ready_sessions.user_id AND turns.session_id = ready_sessions.session_id
        ))
        WHERE user_id = ?1 AND ?2 IN ('', session_id)
        """,
        (user_id, session_id),
    )


def withdraw(
    connection: sqlite3.Connection,
    user_id: str,
    project_id: str,
    opened_before: float,
    *,
    only: Collection[str],
    spare: Collection[str],
) -> int:
    """Includes open turns: they are completed for the record, but not learnt."""
    rows = connection.execute(
        """
        SELECT seq, session_id, stage, window_id, length(messages) + length(answer) FROM turns
        WHERE stage IN ('open', 'ready', 'window') AND user_id = ?1 AND opened_at < ?2 AND ?3 IN ('', project_id)
          AND (?4 = '[]' OR id IN (SELECT value FROM json_each(?4)))
          AND id NOT IN (SELECT value FROM json_each(?5))
        """,
        (user_id, opened_before, project_id, json.dumps(list(only)), json.dumps(list(spare))),
    ).fetchall()
    take_out(connection, user_id, rows, stage="withdrawn")
    return len(rows) + _withdraw_abandoned(connection, user_id, project_id, opened_before, only=only, spare=spare)


QueuedTurn: TypeAlias = tuple[int, str, str, str | None, int]
"""seq, session id, stage, window id and bytes of a turn that is not learnt yet."""


def take_out(connection: sqlite3.Connection, user_id: str, rows: Sequence[QueuedTurn], *, stage: str) -> None:
    """Take these open, ready or leased turns out of the queue, to `stage`."""
    connection.executemany(
        "UPDATE turns SET stage = ?, window_id = NULL WHERE seq = ?", [(stage, seq) for seq, *_ in rows]
    )
    taken: dict[str, list[int]] = {}
    for _, session_id, was, _, size in rows:
        if was == "ready":
            taken.setdefault(session_id, []).append(size)
    for session_id, sizes in taken.items():
        recount_session(connection, user_id, session_id, turns=len(sizes), size=sum(sizes))
    for window_id in sorted({window_id for _, _, was, window_id, _ in rows if was == "window" and window_id}):
        _renew_window(connection, window_id)


def _withdraw_abandoned(
    connection: sqlite3.Connection,
    user_id: str,
    project_id: str,
    opened_before: float,
    *,
    only: Collection[str],
    spare: Collection[str],
) -> int:
    """Turns of abandoned branches that were never learnt must not be learnt if the client resumes the branch."""
    return connection.execute(
        """
        UPDATE turns SET stage = 'withdrawn'
        WHERE stage = 'abandoned' AND opened_at < ?2 AND ?3 IN ('', project_id)
          AND id IN (SELECT turn_id FROM turn_branches WHERE user_id = ?1 AND is_abandoned AND reached != 'learnt')
          AND (?4 = '[]' OR id IN (SELECT value FROM json_each(?4)))
          AND id NOT IN (SELECT value FROM json_each(?5))
        """,
        (user_id, opened_before, project_id, json.dumps(list(only)), json.dumps(list(spare))),
    ).rowcount


def _renew_window(connection: sqlite3.Connection, window_id: str) -> None:
    """Some of its turns were withdrawn: the rest becomes a window with another id, without a plan.

    The old plan may contain what was just deleted; the holder of the old lease gets a `Conflict`.
    """
    left = connection.execute(
        "SELECT seq, id, finished_at FROM turns WHERE stage = 'window' AND window_id = ? ORDER BY seq", (window_id,)
    ).fetchall()
    if not left:
        connection.execute("DELETE FROM windows WHERE id = ?", (window_id,))
        return
    user_id, session_id = connection.execute(
        "SELECT user_id, session_id FROM windows WHERE id = ?", (window_id,)
    ).fetchone()
    renewed = window_id_of(user_id, session_id, (turn_id for _, turn_id, _ in left))
    connection.execute("UPDATE turns SET window_id = ? WHERE stage = 'window' AND window_id = ?", (renewed, window_id))
    connection.execute(
        """
        UPDATE windows SET id = ?, first_seq = ?, turns = ?, first_finished_at = ?,
            plan = NULL, token = NULL, owner = NULL,
            due_at = iif(state = 'leased', 0, due_at), attempt = iif(state IN ('dead', 'shed'), attempt, 0),
            state = iif(state = 'leased', 'waiting', state)
        WHERE id = ?
        """,
        (renewed, left[0][0], len(left), min(at for *_, at in left), window_id),
    )


def backlog(
    connection: sqlite3.Connection, user_id: str, session_id: str, *, opened_before: float, now: float
) -> Backlog:
    """A window whose retry is due by `now` is pending, not waiting; so is a branch whose memories are to be changed."""
    failed, waiting, pending = connection.execute(
        """
        SELECT total(coalesce(windows.state, '') IN ('dead', 'shed')),
               total(windows.state IS 'waiting' AND windows.due_at > :now),
               total(coalesce(windows.state, '') NOT IN ('dead', 'shed'))
        FROM turns LEFT JOIN windows ON windows.id = turns.window_id
        WHERE stage IN ('open', 'ready', 'window') AND turns.user_id = :user_id
          AND :session_id IN ('', turns.session_id) AND opened_at < :opened_before
        """,
        {"user_id": user_id, "session_id": session_id, "opened_before": opened_before, "now": now},
    ).fetchone()
    (shifting,) = connection.execute(
        "SELECT count(*) FROM turn_branches WHERE is_settled = 0 AND user_id = ? AND ? IN ('', session_id)",
        (user_id, session_id),
    ).fetchone()
    return Backlog(pending=int(pending) + int(shifting), waiting=int(waiting), failed=int(failed))


def depth(connection: sqlite3.Connection, *, now: float) -> QueueDepth:
    """Reads the small tables only, so that the cost does not depend on the length of the record."""
    opened = connection.execute("SELECT count(*) FROM turns WHERE status = 'opened'").fetchone()[0]
    ready, oldest_ready = connection.execute(
        "SELECT total(turns), min(first_finished_at) FROM ready_sessions"
    ).fetchone()
    rows = connection.execute("SELECT state, sum(turns), min(first_finished_at) FROM windows GROUP BY state").fetchall()
    turns = {state: count for state, count, _ in rows}
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
