"""States of long conversations in the turn log's database, which all filters share.

Limited per user, in total and in age; `position` only grows, so rows below the limit are the oldest. The state of a
conversation is usually found among its newest keys; only otherwise are all of them looked up.
"""

from __future__ import annotations

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
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.jobs import OnDatabase, writes
from memory.adapters.sql.statements import Connection, listed, statements
from memory.model import CompactedState

SQL = statements("compacted_states")

KEYS_AT_A_GLANCE = 20  # looked up in 0.1 ms

_STATE = msgspec.json.Decoder(CompactedState)


class SqlCompactedStates(OnDatabase):
    """`memory.ports.CompactedStates` in an open `SqlDatabase`."""

    async def find(self, user_id: str, keys: Sequence[str]) -> tuple[str, CompactedState] | None:
        newest, earlier = keys[-KEYS_AT_A_GLANCE:], keys[-STATE_KEYS_ASKED_MAX:-KEYS_AT_A_GLANCE]
        found = await self._database.read_now(partial(_found, user_id=user_id, keys=newest)) if newest else None
        if found is None and earlier:
            found = await self._database.read(partial(_found, user_id=user_id, keys=earlier))
        return found

    @writes
    def keep(self, connection: Connection, user_id: str, key: str, state: CompactedState, *, made_at: float) -> None:
        encoded = msgspec.json.encode(state)
        is_dropped = SQL.dropped_since(connection, user_id=user_id, made_at=made_at).fetchone()
        if len(encoded) > STATE_BYTES_MAX or is_dropped or was_erased_since(connection, user_id, made_at):
            return
        kept = SQL.insert_state(connection, user_id=user_id, key=key, state=encoded, made_at=made_at).fetchone()
        if kept is None:  # the key has a state
            return
        SQL.delete_up_to(connection, position=kept[0] - STATES_MAX)
        SQL.delete_older(connection, made_at=made_at - STATE_SECONDS_MAX)
        SQL.delete_beyond_limit(connection, user_id=user_id, user_states_max=USER_STATES_MAX)

    @writes
    def drop(self, connection: Connection, user_id: str, *, now: float) -> None:
        SQL.forget_drops(connection, now=now - STATE_DROP_SECONDS)
        SQL.note_drop(connection, user_id=user_id, now=now)
        SQL.delete_states(connection, user_id=user_id)


def _found(connection: Connection, *, user_id: str, keys: Sequence[str]) -> tuple[str, CompactedState] | None:
    rows = SQL.keys_with_state(connection, user_id=user_id, keys=listed(keys))
    stored = {key for (key,) in rows}
    newest = next((key for key in reversed(keys) if key in stored), None)
    if newest is None:
        return None
    (state,) = SQL.state_of_key(connection, user_id=user_id, key=newest).fetchone()
    return newest, _STATE.decode(state)
