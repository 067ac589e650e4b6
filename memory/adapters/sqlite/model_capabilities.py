"""Capabilities of the upstream's models on SQLite: shared by all filters, needed in every request.

Each process therefore caches what it read for some seconds. Entries expire, since the template, or the model behind a
name, may have changed. Model names come from clients, hence the limits.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from functools import partial

from memory.adapters.sqlite.database import SqliteDatabase
from memory.model import Placement
from memory.ports import Clock

REMEMBERED_SECONDS = 5.0  # how late a process may see another one's change
LESSON_SECONDS_MAX = 30 * 86_400.0  # then one request may be refused again
MODELS_MAX = 1_000  # cached, and stored
MODEL_CHARACTERS_MAX = 256  # no server has longer names

_CAREFUL = {Placement.BEFORE_LAST_USER: 0, Placement.SYSTEM: 1, Placement.OFF: 2}


class SqliteModelCapabilities:
    """`memory.ports.ModelCapabilities` in an open `SqliteDatabase`."""

    def __init__(self, database: SqliteDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        # With the time at which the entry expires.
        self._remembered: OrderedDict[str, tuple[Placement | None, float]] = OrderedDict()

    async def placement(self, model: str) -> Placement | None:
        name, now = _named(model), self._clock()
        known, until = self._remembered.get(name, (None, 0.0))
        if now < until:
            return known
        known = await self._database.read(partial(_placement, model=name, after=now - LESSON_SECONDS_MAX))
        self._remember(name, known, now)
        return known

    async def learn(self, model: str, placement: Placement) -> None:
        name, now = _named(model), self._clock()
        learning = partial(_learnt, model=name, placement=placement, now=now)
        self._remember(name, await self._database.write(learning), now)

    def _remember(self, name: str, placement: Placement | None, now: float) -> None:
        self._remembered[name] = (placement, now + REMEMBERED_SECONDS)
        self._remembered.move_to_end(name)
        if len(self._remembered) > MODELS_MAX:
            self._remembered.popitem(last=False)


def _named(model: str) -> str:
    return model[:MODEL_CHARACTERS_MAX].encode(errors="replace").decode()


def _placement(connection: sqlite3.Connection, *, model: str, after: float) -> Placement | None:
    row = connection.execute(
        "SELECT placement FROM model_traits WHERE model = ? AND learnt_at > ?", (model, after)
    ).fetchone()
    return None if row is None else Placement(row[0])


def _learnt(connection: sqlite3.Connection, *, model: str, placement: Placement, now: float) -> Placement:
    known = _placement(connection, model=model, after=now - LESSON_SECONDS_MAX)
    if known is not None and _CAREFUL[known] >= _CAREFUL[placement]:
        return known
    connection.execute(
        "INSERT OR REPLACE INTO model_traits (model, placement, learnt_at) VALUES (?, ?, ?)",
        (model, placement.value, now),
    )
    connection.execute(
        "DELETE FROM model_traits WHERE model IN "
        "(SELECT model FROM model_traits ORDER BY learnt_at DESC, model LIMIT -1 OFFSET ?)",
        (MODELS_MAX,),
    )
    return placement
