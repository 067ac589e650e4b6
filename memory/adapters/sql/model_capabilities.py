"""Capabilities of the upstream's models in SQL: shared by all filters. The rules: `model_traits`."""

from __future__ import annotations

from functools import partial

from memory.adapters.model_traits import LESSON_SECONDS_MAX, MODELS_MAX, is_lesson, named
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements
from memory.model import Placement
from memory.ports import Clock

SQL = statements("model_capabilities")


class SqlModelCapabilities:
    """`memory.ports.ModelCapabilities` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def placement(self, model: str) -> Placement | None:
        after = self._clock() - LESSON_SECONDS_MAX
        return await self._database.read(partial(_placement, model=named(model), after=after))

    async def learn(self, model: str, placement: Placement) -> None:
        await self._database.write(partial(_learnt, model=named(model), placement=placement, now=self._clock()))


def _placement(connection: Connection, *, model: str, after: float) -> Placement | None:
    row = SQL.placement_of(connection, model=model, after=after).fetchone()
    return None if row is None else Placement(row[0])


def _learnt(connection: Connection, *, model: str, placement: Placement, now: float) -> None:
    known = _placement(connection, model=model, after=now - LESSON_SECONDS_MAX)
    if known is not None and not is_lesson(known, placement):
        return
    SQL.put_placement(connection, model=model, placement=placement.value, now=now)
    SQL.delete_beyond_limit(connection, models_max=MODELS_MAX)
