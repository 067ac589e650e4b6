"""Capabilities of the upstream's models in SQL: shared by all filters.

Lessons expire, since the template, or the model behind a name, may have changed. Model names come from clients, hence
the limits.
"""

from __future__ import annotations

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.jobs import OnDatabase, reads, writes
from memory.adapters.sql.statements import Connection, statements
from memory.model import Placement
from memory.ports import Clock

SQL = statements("model_capabilities")

LESSON_SECONDS_MAX = 30 * 86_400.0  # then one request may be refused again
MODELS_MAX = 1_000  # stored
MODEL_CHARACTERS_MAX = 256  # no server has longer names

_CAREFUL = {Placement.BEFORE_LAST_USER: 0, Placement.SYSTEM: 1, Placement.OFF: 2}


class SqlModelCapabilities(OnDatabase):
    """`memory.ports.ModelCapabilities` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        super().__init__(database)
        self._clock = clock

    @reads
    def placement(self, connection: Connection, model: str) -> Placement | None:
        return _placement(connection, named(model), now=self._clock())

    @writes
    def learn(self, connection: Connection, model: str, placement: Placement) -> None:
        now = self._clock()
        known = _placement(connection, named(model), now=now)
        if known is None or _CAREFUL[known] < _CAREFUL[placement]:
            SQL.put_placement(connection, model=named(model), placement=placement.value, now=now)
            SQL.delete_beyond_limit(connection, models_max=MODELS_MAX)


def named(model: str) -> str:
    return model[:MODEL_CHARACTERS_MAX].encode(errors="replace").decode()


def _placement(connection: Connection, model: str, *, now: float) -> Placement | None:
    row = SQL.placement_of(connection, model=model, after=now - LESSON_SECONDS_MAX).fetchone()
    return None if row is None else Placement(row[0])
