"""Capabilities of the upstream's models on SQLite: shared by all filters. The rules: `model_traits`."""

from __future__ import annotations

import sqlite3
from functools import partial

from memory.adapters.model_traits import LESSON_SECONDS_MAX, MODELS_MAX, RememberedPlacements, is_lesson, named
from memory.adapters.sql.database import SqlDatabase
from memory.model import Placement
from memory.ports import Clock


class SqlModelCapabilities:
    """`memory.ports.ModelCapabilities` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._remembered = RememberedPlacements()

    async def placement(self, model: str) -> Placement | None:
        name, now = named(model), self._clock()
        known, is_known = self._remembered.get(name, now=now)
        if not is_known:
            known = await self._database.read(partial(_placement, model=name, after=now - LESSON_SECONDS_MAX))
            self._remembered.put(name, known, now=now)
        return known

    async def learn(self, model: str, placement: Placement) -> None:
        name, now = named(model), self._clock()
        learning = partial(_learnt, model=name, placement=placement, now=now)
        self._remembered.put(name, await self._database.write(learning), now=now)


def _placement(connection: sqlite3.Connection, *, model: str, after: float) -> Placement | None:
    row = connection.execute(
        "SELECT placement FROM model_traits WHERE model = ? AND learnt_at > ?", (model, after)
    ).fetchone()
    return None if row is None else Placement(row[0])


def _learnt(connection: sqlite3.Connection, *, model: str, placement: Placement, now: float) -> Placement:
    known = _placement(connection, model=model, after=now - LESSON_SECONDS_MAX)
    if known is not None and not is_lesson(known, placement):
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
