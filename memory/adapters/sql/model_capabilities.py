"""What is known of models in SQL: where the upstream's take notes, for all filters, and exam results, for all workers.

Both expire, since the template, or the model behind a name, may have changed, or its server been fixed: failures
expire sooner. Model names come from clients, hence the limits.
"""

from __future__ import annotations

import json

from memory.adapters.sql.database import DatedOnDatabase, reads, writes
from memory.adapters.sql.statements import Connection, statements
from memory.model import Placement
from memory.ports.reading import ExamKey, ExamResult

SQL = statements("model_capabilities")

LESSON_SECONDS_MAX = 30 * 86_400.0  # then one request may be refused again
MODELS_MAX = 1_000  # stored
PASSED_SECONDS_MAX = 30 * 86_400.0
FAILED_SECONDS_MAX = 86_400.0
RESULTS_MAX = 1_000
NAME_CHARACTERS_MAX = 256  # of a model, a server, a version: no server has longer names

_CAREFUL = {Placement.BEFORE_LAST_USER: 0, Placement.SYSTEM: 1, Placement.OFF: 2}


class SqlModelCapabilities(DatedOnDatabase):
    @reads
    def placement(self, connection: Connection, model: str) -> Placement | None:
        return _placement(connection, named(model), now=self._clock())

    @writes
    def learn(self, connection: Connection, model: str, placement: Placement) -> None:
        now = self._clock()
        known = _placement(connection, named(model), now=now)
        if known is None or _CAREFUL[known] < _CAREFUL[placement]:
            SQL.put_placement(connection, model=named(model), placement=placement.value, now=now)
            SQL.delete_oldest_models(connection, models_max=MODELS_MAX)


def named(name: str) -> str:
    return name[:NAME_CHARACTERS_MAX].encode(errors="replace").decode()


def _placement(connection: Connection, model: str, *, now: float) -> Placement | None:
    return SQL.placement_of.value(connection, Placement, model=model, after=now - LESSON_SECONDS_MAX)


class SqlExamResults(DatedOnDatabase):
    @reads
    def get(self, connection: Connection, key: ExamKey) -> ExamResult | None:
        limits = {"passed_seconds_max": PASSED_SECONDS_MAX, "failed_seconds_max": FAILED_SECONDS_MAX}
        row = SQL.result_of(connection, **_named(key), now=self._clock(), **limits).fetchone()
        return None if row is None else ExamResult(bool(row[0]), row[1], tuple(json.loads(row[2])))

    @writes
    def put(self, connection: Connection, key: ExamKey, result: ExamResult) -> None:
        SQL.put_result(
            connection,
            **_named(key),
            passed=result.passed,
            score=result.score,
            failures=json.dumps(result.failures),
            now=self._clock(),
        )
        SQL.delete_oldest_results(connection, results_max=RESULTS_MAX)


def _named(key: ExamKey) -> dict[str, str]:
    return {"model": named(key.model), "server": named(key.server), "version": named(key.version)}
