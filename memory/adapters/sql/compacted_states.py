"""States of long conversations in the turn log's database, which all filters share.

Limited per user, in total and in age; `position` only grows, so rows below the limit are the oldest. The state of a
conversation is usually found among its newest keys; only otherwise are all of them looked up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial

import msgspec

from memory.adapters.retention import (
    STATE_BYTES_MAX,
    STATE_DROP_SECONDS,
    STATE_KEYS_ASKED_MAX,
    STATE_SECONDS_MAX,
    STATES_MAX,
    USER_STATES_MAX,
)
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.erased_users import was_erased_since
from memory.model import CompactedState

KEYS_AT_A_GLANCE = 20  # looked up in 0.1 ms

_STATE = msgspec.json.Decoder(CompactedState)


class SqlCompactedStates:
    """`memory.ports.CompactedStates` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def find(self, user_id: str, keys: Sequence[str]) -> tuple[str, CompactedState] | None:
        newest, earlier = keys[-KEYS_AT_A_GLANCE:], keys[-STATE_KEYS_ASKED_MAX:-KEYS_AT_A_GLANCE]
        found = await self._database.read_now(partial(_found, user_id=user_id, keys=newest)) if newest else None
        if found is None and earlier:
            found = await self._database.read(partial(_found, user_id=user_id, keys=earlier))
        return found

    async def keep(self, user_id: str, key: str, state: CompactedState, *, made_at: float) -> None:
        encoded = msgspec.json.encode(state)
        if len(encoded) <= STATE_BYTES_MAX:
            job = partial(_kept, user_id=user_id, key=key, state=encoded, made_at=made_at)
            await self._database.write(job)

    async def drop(self, user_id: str, *, now: float) -> None:
        await self._database.write(partial(_dropped, user_id=user_id, now=now))


def _found(connection: sqlite3.Connection, *, user_id: str, keys: Sequence[str]) -> tuple[str, CompactedState] | None:
    row = connection.execute(
        "SELECT wanted.value, state FROM json_each(?2) AS wanted JOIN compacted_states AS kept "
        "ON kept.user_id = ?1 AND kept.key = wanted.value ORDER BY wanted.key DESC LIMIT 1",
        (user_id, msgspec.json.encode(keys).decode()),
    ).fetchone()
    return None if row is None else (row[0], _STATE.decode(row[1]))


def _kept(connection: sqlite3.Connection, *, user_id: str, key: str, state: bytes, made_at: float) -> None:
    dropped = connection.execute(
        "SELECT 1 FROM compacted_states_dropped WHERE user_id = ? AND dropped_at >= ?", (user_id, made_at)
    ).fetchone()
    if dropped is not None or was_erased_since(connection, user_id, made_at):
        return
    kept = connection.execute(
        "INSERT OR IGNORE INTO compacted_states (user_id, key, state, kept_at) VALUES (?, ?, ?, ?)",
        (user_id, key, state, made_at),
    )
    if kept.rowcount != 1:  # the key has a state
        return
    connection.execute("DELETE FROM compacted_states WHERE position <= ?", ((kept.lastrowid or 0) - STATES_MAX,))
    connection.execute("DELETE FROM compacted_states WHERE kept_at < ?", (made_at - STATE_SECONDS_MAX,))
    connection.execute(
        "DELETE FROM compacted_states WHERE user_id = ?1 AND position <= ("
        "SELECT position FROM compacted_states WHERE user_id = ?1 ORDER BY position DESC LIMIT 1 OFFSET ?2)",
        (user_id, USER_STATES_MAX),
    )


def _dropped(connection: sqlite3.Connection, *, user_id: str, now: float) -> None:
    connection.execute("DELETE FROM compacted_states_dropped WHERE dropped_at < ?", (now - STATE_DROP_SECONDS,))
    connection.execute(
        "INSERT OR REPLACE INTO compacted_states_dropped (user_id, dropped_at) VALUES (?, ?)", (user_id, now)
    )
    connection.execute("DELETE FROM compacted_states WHERE user_id = ?", (user_id,))
