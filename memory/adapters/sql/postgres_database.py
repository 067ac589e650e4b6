"""Jobs on PostgreSQL: a few threads with a connection each, and transactions that are repeated when they met another.

A job that writes runs in a `SERIALIZABLE` transaction: it sees and does what it would alone, as on SQLite. Where two
transactions met, one fails with 40001 and its job runs again, a bounded number of times, after a short random pause.
Reads see one snapshot (`REPEATABLE READ READ ONLY`) and never fail for that. What is posted is written by one
thread, in order, after all writes that were under way.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self, TypeVar

import psycopg

from memory.adapters.sql.beating_owners import BeatingOwners
from memory.adapters.sql.database import CALL_SECONDS_MAX, Job
from memory.adapters.sql.postgres_errors import IS_GONE, MET_ANOTHER, translated
from memory.adapters.sql.postgres_pool import PostgresAddress, PostgresConnection, PostgresPool
from memory.adapters.sql.postgres_schema import prepare_tables
from memory.errors import Unavailable

THREADS_MAX = 8  # and connections, of a process; one more for what is posted, and one for the heartbeat
WAITING_JOBS_MAX = 2_000  # about ten seconds of a busy filter; beyond it calls are refused
TRIES_MAX = 20  # of a transaction that meets others
PAUSE_SECONDS_MAX = 0.05  # before the next try, random
WRITING = "BEGIN ISOLATION LEVEL SERIALIZABLE"
READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

Result = TypeVar("Result")


class PostgresDatabase:
    """`memory.adapters.sql.database.SqlDatabase`. Open with `async with`.

    Opening creates the tables in an empty database. Raises `BadSetting` for one that cannot be used, `Unavailable`.
    """

    def __init__(self, address: PostgresAddress, *, introduction: str = "") -> None:
        """`introduction`: what other processes may read of this one while it lives."""
        self.address = address
        self._pool = PostgresPool(address)
        self.owners = BeatingOwners(self._pool, introduction=introduction)
        self._threads: ThreadPoolExecutor | None = None
        self._poster: ThreadPoolExecutor | None = None
        self._writing: set[Future[object]] = set()
        self._lock = threading.Lock()
        self._waiting = 0

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(prepare_tables, self.address)
        await asyncio.to_thread(self.owners.enter)
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="turn-log")
        self._poster = ThreadPoolExecutor(1, thread_name_prefix="turn-log-poster")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was posted is still written. Turns that stay open become `unknown` for other processes."""
        if self._threads is None or self._poster is None:
            return
        threads, poster = self._threads, self._poster
        self._threads = self._poster = None
        await asyncio.to_thread(threads.shutdown)
        await asyncio.to_thread(poster.shutdown)
        await asyncio.to_thread(self.owners.leave)
        self._pool.close()

    async def write(self, job: Job[Result]) -> Result:
        future = self._submit(self._written, job)
        with self._lock:
            self._writing.add(future)  # type: ignore[arg-type]  # nobody here looks at its result
        future.add_done_callback(self._forget)  # type: ignore[arg-type]  # likewise
        return await _bounded(future)

    async def read(self, job: Job[Result]) -> Result:
        return await _bounded(self._submit(self._read, job))

    async def read_now(self, job: Job[Result]) -> Result:
        """Without a transaction around it."""
        return await _bounded(self._submit(self._read_now, job))

    def post(self, job: Job[object], *, then: Callable[[], None] | None = None) -> None:
        if self._poster is None or self._waiting >= WAITING_JOBS_MAX:
            if then is not None:
                then()
            return
        loop = asyncio.get_running_loop()
        with self._lock:
            before = set(self._writing)
        self._waiting += 1

        def run() -> None:
            try:
                wait(before, timeout=CALL_SECONDS_MAX)
                self._written(job)
            finally:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(over)

        def over() -> None:
            self._waiting -= 1
            if then is not None:
                then()

        self._poster.submit(run)

    def _submit(self, run: Callable[[Job[Result]], Result], job: Job[Result]) -> Future[Result]:
        if self._threads is None:
            raise Unavailable("turn_log", "it is closed")
        if self._waiting >= WAITING_JOBS_MAX:
            raise Unavailable("turn_log", f"more than {WAITING_JOBS_MAX} calls are waiting")
        return self._threads.submit(run, job)

    def _forget(self, future: Future[object]) -> None:
        with self._lock:
            self._writing.discard(future)

    def _written(self, job: Job[Result]) -> Result:
        give_up_at = time.monotonic() + CALL_SECONDS_MAX
        for attempt in range(TRIES_MAX):
            try:
                with self._pool.connection() as connection:
                    return _in_transaction(connection, WRITING, job)
            except MET_ANOTHER as error:
                if attempt + 1 == TRIES_MAX or time.monotonic() > give_up_at:
                    raise translated(error) from error
                time.sleep(random.uniform(0, PAUSE_SECONDS_MAX) * min(1.0, attempt / 4))  # noqa: S311  # no secret
            except psycopg.Error as error:
                raise translated(error) from error
        raise AssertionError("the last try returned or raised")

    def _read(self, job: Job[Result]) -> Result:
        return self._without_a_change(lambda connection: _in_transaction(connection, READING, job))

    def _read_now(self, job: Job[Result]) -> Result:
        return self._without_a_change(job)

    def _without_a_change(self, job: Callable[[PostgresConnection], Result]) -> Result:
        """Once more where the connection was one that the server had closed meanwhile."""
        try:
            try:
                with self._pool.connection() as connection:
                    return job(connection)
            except IS_GONE:
                with self._pool.connection() as connection:
                    return job(connection)
        except psycopg.Error as error:
            raise translated(error) from error


def _in_transaction(connection: PostgresConnection, begin: str, job: Job[Result]) -> Result:
    raw = connection.raw
    raw.execute(begin, prepare=False)
    try:
        result = job(connection)
        raw.execute("COMMIT", prepare=False)
    except BaseException:
        if not raw.closed:
            raw.execute("ROLLBACK", prepare=False)
        raise
    return result


async def _bounded(future: Future[Result]) -> Result:
    """Wait for the thread, at most `CALL_SECONDS_MAX`. The job runs in any case, also if the caller is cancelled."""
    try:
        async with asyncio.timeout(CALL_SECONDS_MAX):
            return await asyncio.shield(asyncio.wrap_future(future))
    except TimeoutError as error:
        raise Unavailable("turn_log", f"no answer within {CALL_SECONDS_MAX:.0f} s") from error


__all__ = ["PostgresDatabase"]
