"""Exchanges that later requests may continue, in the turn log's database, which all filters share.

Limited per user, in total and in age; `position` only grows, so rows below the limit are the oldest. A client may
continue within a millisecond of an answer: until its row is written, this process finds a link in memory.

Idempotency keys: a row holds a hash of the call and the ids that it returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from memory.adapters.sql.database import OnDatabase, SqlDatabase, reads, writes
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.turns_rows import turn_of
from memory.model import ChainLink, Scope, Turn, is_valid_id
from memory.ports.requests import KeyClaim
from memory.runtime.recent import Recent
from memory.typed import from_json

SQL = statements("requests_by_name")

PENDING_MAX = 1_000  # of this process; usually written within milliseconds
USER_LINKS_MAX = 2_000
LINKS_MAX = 200_000  # of all users; about 200 bytes each, a KB with many notes
LINK_SECONDS_MAX = 30 * 86_400.0  # as long as servers keep responses

_KEYS = msgspec.json.Decoder(tuple[str, ...])


class SqlResponseChains(OnDatabase):
    def __init__(self, database: SqlDatabase) -> None:
        super().__init__(database)
        self._pending: Recent[tuple[str, str], ChainLink] = Recent(PENDING_MAX)

    async def find(self, user_id: str, name: str) -> ChainLink | None:
        if not is_valid_id(name):
            return None
        pending = self.unwritten(user_id, name)
        return pending or await self._database.read_now(partial(link_of, user_id=user_id, name=name))

    def unwritten(self, user_id: str, name: str) -> ChainLink | None:
        """The link that this process is writing now."""
        return self._pending.get((user_id, name))

    async def keep(self, user_id: str, names: tuple[str, ...], link: ChainLink, *, at: float) -> None:
        names = tuple(filter(is_valid_id, names))
        if not names:
            return
        for name in names:
            self._pending[user_id, name] = link
        try:
            await self._kept(user_id, names, link, at=at)
        finally:
            for name in names:
                if self._pending.get((user_id, name)) is link:
                    del self._pending[user_id, name]

    async def said_before(self, scope: Scope, name: str, *, limit: int) -> list[Turn]:
        link = await self.find(scope.user_id, name)
        if link is None:
            return []
        return await self._turns_before(scope, link, limit=limit)

    @writes
    def _kept(
        self, connection: Connection, user_id: str, names: tuple[str, ...], link: ChainLink, *, at: float
    ) -> None:
        if was_erased_since(connection, user_id, at):
            return
        keys = msgspec.json.encode(link.note_keys)
        for name in names:
            SQL.delete_link(connection, user_id=user_id, name=name)
            kept = SQL.put_link(
                connection,
                user_id=user_id,
                name=name,
                session_id=link.session_id,
                turn_id=link.turn_id,
                keys=keys,
                at=at,
            )
            SQL.delete_up_to(connection, position=kept.fetchone()[0] - LINKS_MAX)
        SQL.delete_older(connection, at=at - LINK_SECONDS_MAX)
        SQL.delete_beyond_limit(connection, user_id=user_id, user_links_max=USER_LINKS_MAX)

    @reads
    def _turns_before(self, connection: Connection, scope: Scope, link: ChainLink, *, limit: int) -> list[Turn]:
        """An exchange that is not recorded, or not yet, is the last one of its session."""
        rows = SQL.turns_before(
            connection,
            user_id=scope.user_id,
            session_id=link.session_id,
            project_id=scope.project_id,
            agent_id=scope.agent_id,
            turn_id=link.turn_id,
            limit=limit,
        ).fetchall()
        return [turn_of(row) for row in reversed(rows)]

    @writes
    def erase(self, connection: Connection, user_id: str) -> None:
        SQL.delete_links(connection, user_id=user_id)


def link_of(connection: Connection, user_id: str, name: str) -> ChainLink | None:
    return SQL.link_by_name.one(
        connection, lambda row: ChainLink(row[0], row[1], _KEYS.decode(row[2])), user_id=user_id, name=name
    )


CALL_SECONDS = 86_400.0  # far longer than any client goes on repeating a call
USER_CALLS_MAX = 10_000


class SqlIdempotencyKeys(OnDatabase):
    @writes
    def claim(self, connection: Connection, user_id: str, key: str, *, fingerprint: bytes, now: float) -> KeyClaim:
        SQL.delete_older_keys(connection, now=now - CALL_SECONDS)
        inserted = SQL.insert_key(connection, user_id=user_id, key=key, fingerprint=fingerprint, now=now)
        if inserted.rowcount == 1:
            SQL.delete_keys_beyond_limit(connection, user_id=user_id, user_calls_max=USER_CALLS_MAX)
        first, claimed_at, answer = SQL.call_of_key(connection, user_id=user_id, key=key).fetchone()
        ids = None if answer is None else tuple(from_json(answer, list[str]))
        return KeyClaim(first, claimed_at, ids)

    @writes
    def answered(self, connection: Connection, user_id: str, key: str, answer: Sequence[str]) -> None:
        SQL.set_answer(connection, answer=msgspec.json.encode(list(answer)).decode(), user_id=user_id, key=key)

    @writes
    def erase(self, connection: Connection, user_id: str) -> None:
        SQL.delete_keys(connection, user_id=user_id)
