"""Exam results of chat models in SQL: shared by all workers, read at their start.

Results expire, since the model behind a name may have been replaced, or its server fixed, so that failures expire
sooner.
"""

from __future__ import annotations

import json

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.jobs import OnDatabase, reads, writes
from memory.adapters.sql.statements import Connection, statements
from memory.ports import Clock
from memory.ports.reading import ExamKey, ExamResult

SQL = statements("exams")

PASSED_SECONDS_MAX = 30 * 86_400.0
FAILED_SECONDS_MAX = 86_400.0
RESULTS_MAX = 1_000
NAME_CHARACTERS_MAX = 256  # of a model, a server, a version


class SqlExamResults(OnDatabase):
    """`memory.ports.reading.ExamResults` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        super().__init__(database)
        self._clock = clock

    @reads
    def get(self, connection: Connection, key: ExamKey) -> ExamResult | None:
        row = SQL.result_of(
            connection,
            **_named(key),
            now=self._clock(),
            passed_seconds_max=PASSED_SECONDS_MAX,
            failed_seconds_max=FAILED_SECONDS_MAX,
        ).fetchone()
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
        SQL.delete_beyond_limit(connection, results_max=RESULTS_MAX)


def _named(key: ExamKey) -> dict[str, str]:
    names = {"model": key.model, "server": key.server, "version": key.version}
    return {part: name[:NAME_CHARACTERS_MAX].encode(errors="replace").decode() for part, name in names.items()}
