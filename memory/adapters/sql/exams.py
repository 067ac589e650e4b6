"""Exam results of chat models in SQL: shared by all workers, read at their start.

Results expire, since the model behind a name may have been replaced, or its server fixed, so that failures expire
sooner.
"""

from __future__ import annotations

import json
from functools import partial

from memory.adapters.exam_rules import FAILED_SECONDS_MAX, PASSED_SECONDS_MAX, RESULTS_MAX, named
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements
from memory.ports import Clock
from memory.ports.reading import ExamKey, ExamResult

SQL = statements("exams")


class SqlExamResults:
    """`memory.ports.reading.ExamResults` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self, key: ExamKey) -> ExamResult | None:
        return await self._database.read(partial(_result, key=named(key), now=self._clock()))

    async def put(self, key: ExamKey, result: ExamResult) -> None:
        await self._database.write(partial(_put, key=named(key), result=result, now=self._clock()))


def _result(connection: Connection, *, key: tuple[str, str, str], now: float) -> ExamResult | None:
    model, server, version = key
    row = SQL.result_of(
        connection,
        model=model,
        server=server,
        version=version,
        now=now,
        passed_seconds_max=PASSED_SECONDS_MAX,
        failed_seconds_max=FAILED_SECONDS_MAX,
    ).fetchone()
    return None if row is None else ExamResult(bool(row[0]), row[1], tuple(json.loads(row[2])))


def _put(connection: Connection, *, key: tuple[str, str, str], result: ExamResult, now: float) -> None:
    model, server, version = key
    SQL.put_result(
        connection,
        model=model,
        server=server,
        version=version,
        passed=result.passed,
        score=result.score,
        failures=json.dumps(result.failures),
        now=now,
    )
    SQL.delete_beyond_limit(connection, results_max=RESULTS_MAX)
