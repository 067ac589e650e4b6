"""Exam results of chat models on SQLite: shared by all workers, read at their start.

Results expire, since the model behind a name may have been replaced, or its server fixed, so that failures expire
sooner.
"""

from __future__ import annotations

import json
import sqlite3
from functools import partial

from memory.adapters.exam_rules import FAILED_SECONDS_MAX, PASSED_SECONDS_MAX, RESULTS_MAX, named
from memory.adapters.sql.database import SqlDatabase
from memory.ports import Clock
from memory.ports.reading import ExamKey, ExamResult


class SqlExamResults:
    """`memory.ports.reading.ExamResults` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self, key: ExamKey) -> ExamResult | None:
        return await self._database.read(partial(_result, key=named(key), now=self._clock()))

    async def put(self, key: ExamKey, result: ExamResult) -> None:
        await self._database.write(partial(_put, key=named(key), result=result, now=self._clock()))


def _result(connection: sqlite3.Connection, *, key: tuple[str, str, str], now: float) -> ExamResult | None:
    row = connection.execute(
        "SELECT passed, score, failures FROM exam_results WHERE (model, server, version) = (?, ?, ?) "
        "AND sat_at > ? - iif(passed, ?, ?)",
        (*key, now, PASSED_SECONDS_MAX, FAILED_SECONDS_MAX),
    ).fetchone()
    return None if row is None else ExamResult(bool(row[0]), row[1], tuple(json.loads(row[2])))


def _put(connection: sqlite3.Connection, *, key: tuple[str, str, str], result: ExamResult, now: float) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO exam_results (model, server, version, passed, score, failures, sat_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*key, result.passed, result.score, json.dumps(result.failures), now),
    )
    connection.execute(
        "DELETE FROM exam_results WHERE (model, server, version) IN "
        "(SELECT model, server, version FROM exam_results ORDER BY sat_at DESC, model LIMIT -1 OFFSET ?)",
        (RESULTS_MAX,),
    )
