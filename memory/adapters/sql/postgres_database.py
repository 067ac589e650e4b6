"""Jobs on PostgreSQL: a few threads with a connection each, and transactions that are repeated when they met another.

A job that writes runs in a `SERIALIZABLE` transaction: it sees and does what it would alone, as on SQLite. Where two
transactions met, one fails with 40001 and its job runs again, a bounded number of times, after a short random pause.
Reads see one snapshot (`REPEATABLE READ READ ONLY`) and never fail for that. Jobs that write
run in one thread per process and in order (`job_writer`), so that only those of different processes meet.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

import psycopg

from memory.adapters.sql.beating_owners import BeatingOwners
from memory.adapters.sql.database import CALL_SECONDS_MAX, Job
from memory.adapters.sql.job_writer import OF_ONE_JOB, Batch, JobWriter, WritesJobs, bounded
from memory.adapters.sql.postgres_errors import MET_ANOTHER, is_gone, translating
from memory.adapters.sql.postgres_pool import PostgresAddress, PostgresConnection, PostgresPool
from memory.adapters.sql.postgres_schema import prepare_tables
from memory.adapters.sql.statements import Connection
from memory.errors import Unavailable

READERS = 4  # threads of a process, with a connection each; one more for the writer, and one for the heartbeat
WAITING_READS_MAX = 2_000  # beyond it calls are refused
TRIES_MAX = 20  # of a transaction that meets others
PAUSE_SECONDS_MAX = 0.05  # before the next try, random
WRITING = b"BEGIN ISOLATION LEVEL SERIALIZABLE"
READING = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

Result = TypeVar("Result")


class PostgresDatabase(WritesJobs):
    """`memory.adapters.sql.database.SqlDatabase`. Open with `async with`.

    Opening creates the tables in an empty database. Raises `BadSetting` for one that cannot be used, `Unavailable`.
    """

    def __init__(self, address: PostgresAddress, *, introduction: str = "") -> None:
        """`introduction`: what other processes may read of this one while it lives."""
        self.address = address
        self._pool = PostgresPool(address)
        self.owners = BeatingOwners(self._pool, introduction=introduction)
        self._readers: ThreadPoolExecutor | None = None
        self._reading = 0

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(prepare_tables, self.address)
        await asyncio.to_thread(self.owners.enter)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="turn-log-reader")
        self._writer = JobWriter(self._commit)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Pending jobs are still written. Turns that stay open become `unknown` for other processes."""
        if self._readers is None or self._writer is None:
            return
        readers, writer = self._readers, self._writer
        self._readers = self._writer = None
        await writer.close(self.owners.leave)
        await asyncio.to_thread(readers.shutdown)
        self._pool.close()

    async def read(self, job: Job[Result]) -> Result:
        return await self._submit(self._read, job)

    async def read_now(self, job: Job[Result]) -> Result:
        """Without a transaction around it."""
        return await self._submit(self._read_now, job)

    async def server_time(self) -> float:
        def now(connection: Connection) -> float:
            assert isinstance(connection, PostgresConnection)  # what this runner gives
            row = connection.raw.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
            assert row is not None, "a SELECT without FROM gives one row"
            return float(row[0])

        return await self._submit(self._read_now, now)

    async def _submit(self, run: Callable[[Job[Result]], Result], job: Job[Result]) -> Result:
        if self._readers is None:
            raise Unavailable("turn_log", "it is closed")
        if self._reading >= WAITING_READS_MAX:
            raise Unavailable("turn_log", f"more than {WAITING_READS_MAX} reads are waiting")
        self._reading += 1
        future = self._readers.submit(run, job)
        try:
            return await bounded(future)
        finally:
            future.cancel()  # unless it runs by now: nobody waits for it any more, and the server may be slow
            self._reading -= 1

    def _commit(self, batch: Batch) -> None:
        """All in one transaction; each in its own if one of them raises, or they keep meeting those of others."""
        if len(batch) > 1:
            is_done = self._commit_together(batch)
            if is_done:
                return
        for entry in batch:
            try:
                entry.results.append(self._written(entry.job, tries=TRIES_MAX))
            except OF_ONE_JOB as error:
                entry.failure = error

    def _commit_together(self, batch: Batch) -> bool:
        """False if nothing was committed, and each has to be tried alone."""
        try:
            results = self._written(lambda connection: [entry.job(connection) for entry in batch], tries=2)
        except OF_ONE_JOB as error:  # the job that raised it raises it again when it is alone
            cause = error.__cause__
            if not isinstance(cause, psycopg.Error) or not is_gone(cause):
                return False
            for entry in batch:
                entry.failure = error
            return True
        for entry, result in zip(batch, results, strict=True):
            entry.results.append(result)
        return True

    def _written(self, job: Job[Result], *, tries: int) -> Result:
        give_up_at = time.monotonic() + CALL_SECONDS_MAX
        with translating():
            for attempt in range(tries):
                try:
                    with self._pool.connection() as connection:
                        return _in_transaction(connection, WRITING, job)
                except MET_ANOTHER:
                    if attempt + 1 == tries or time.monotonic() > give_up_at:
                        raise
                    time.sleep(random.uniform(0, PAUSE_SECONDS_MAX) * min(1.0, attempt / 4))  # noqa: S311  # no secret
        raise AssertionError("the last try returned or raised")

    def _read(self, job: Job[Result]) -> Result:
        return self._without_a_change(lambda connection: _in_transaction(connection, READING, job))

    def _read_now(self, job: Job[Result]) -> Result:
        return self._without_a_change(job)

    def _without_a_change(self, job: Callable[[PostgresConnection], Result]) -> Result:
        """Once more where the connection was one that the server had closed meanwhile."""
        with translating():
            try:
                with self._pool.connection() as connection:
                    return job(connection)
            except psycopg.Error as error:
                if not is_gone(error):
                    raise
            with self._pool.connection() as connection:
                return job(connection)


def _in_transaction(connection: PostgresConnection, begin: bytes, job: Job[Result]) -> Result:
    raw = connection.raw
    connection.command(begin)
    try:
        result = job(connection)
        connection.command(b"COMMIT")
        return result
    finally:
        if not raw.closed and raw.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            connection.command(b"ROLLBACK")
