"""Exchanges that later requests may go on from, in the turn log's database, so that all filters share them.

Bounded per user, in all, and in time; `position` only grows, so what lies further back than the bound is what goes. A
client may go on within a millisecond of an answer: this process remembers what it is just writing.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from functools import partial

import msgspec

from memory.adapters.sqlite.database import SqliteDatabase
from memory.model import ChainLink, is_valid_id

USER_LINKS_MAX = 2_000
LINKS_MAX = 200_000  # of all users; some 200 bytes each, a KB where there are many notes
AGE_SECONDS_MAX = 30 * 86_400.0  # as long as servers keep responses
RECENT_MAX = 1_000  # of this process; they are written within milliseconds

_KEYS = msgspec.json.Decoder(tuple[str, ...])


class SqliteResponseChains:
    """`memory.ports.ResponseChains` in an open `SqliteDatabase`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._recent: OrderedDict[tuple[str, str], ChainLink] = OrderedDict()

    async def find(self, user_id: str, name: str) -> ChainLink | None:
        if not is_valid_id(name):
            return None
        recent = self._recent.get((user_id, name))
        if recent is not None:
            return recent
        return await self._database.glance(partial(_found, user_id=user_id, name=name))

    async def keep(self, user_id: str, names: tuple[str, ...], link: ChainLink, *, at: float) -> None:
        names = tuple(filter(is_valid_id, names))
        if not names:
            return
        for name in names:
            self._recent[user_id, name] = link
            self._recent.move_to_end((user_id, name))
        while len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)
        await self._database.write(partial(_keep, user_id=user_id, names=names, link=link, at=at))


def _found(connection: sqlite3.Connection, *, user_id: str, name: str) -> ChainLink | None:
    row = connection.execute(
        "SELECT session_id, turn_id, note_keys FROM chains WHERE user_id = ? AND name = ?", (user_id, name)
    ).fetchone()
    return None if row is None else ChainLink(row[0], row[1], _KEYS.decode(row[2]))


def _keep(connection: sqlite3.Connection, *, user_id: str, names: tuple[str, ...], link: ChainLink, at: float) -> None:
    keys = msgspec.json.encode(link.note_keys)
    for name in names:
        kept = connection.execute(
            "INSERT OR REPLACE INTO chains (user_id, name, session_id, turn_id, note_keys, kept_at)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (user_id, name, link.session_id, link.turn_id, keys, at),
        )
        connection.execute("DELETE FROM chains WHERE position <= ?", ((kept.lastrowid or 0) - LINKS_MAX,))
    connection.execute("DELETE FROM chains WHERE kept_at < ?", (at - AGE_SECONDS_MAX,))
    connection.execute(
        "DELETE FROM chains WHERE user_id = ?1 AND position <= ("
        "SELECT position FROM chains WHERE user_id = ?1 ORDER BY position DESC LIMIT 1 OFFSET ?2)",
        (user_id, USER_LINKS_MAX),
    )
