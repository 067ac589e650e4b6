"""One SQLite file for many processes of one host: a writer thread that commits in groups, and a reader beside it.

What waits when the writer comes by goes into one transaction, so a burst costs one commit instead of hundreds; nobody
waits on purpose, but for what is posted, which nobody waits for. A transaction begins and ends inside the writer
thread: none is ever open across an await. Reads have a connection and a thread of their own and, thanks to the
write-ahead log, never wait for a write; one that takes microseconds is done on the loop, by a third connection, for the
way to a thread and back takes longer. Local disk only: locks and shared memory do not work over a network file system.

A job is a plain function of the connection. It runs in the writer thread inside a savepoint: what it raises undoes that
job alone and reaches its caller alone. A cancelled caller does not stop its job: a write happens wholly or not at all.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Generic, Literal, Self, TypeAlias, TypeVar

from memory.adapters.sqlite.owners import Owners, setting_up
from memory.adapters.sqlite.schema import SQLITE_OLDEST, create_tables
from memory.errors import BadSetting, MemproxyError, Unavailable

BUSY_SECONDS_MAX = 5.0  # for the write lock, which another process holds for milliseconds
CALL_SECONDS_MAX = 10.0  # one transaction that waits in vain, and then our own; no caller waits longer
BATCH_JOBS_MAX = 256  # in one transaction, so that the other processes get their turn
WAITING_JOBS_MAX = 2_000  # about ten seconds of a busy filter: past it we are too slow, and say so
POST_SECONDS = 0.01  # what is posted within it wakes the writer once
LOG_BYTES_MAX = 64 << 20  # the write-ahead log is cut back to this after a burst

Result = TypeVar("Result")
Job: TypeAlias = Callable[[sqlite3.Connection], Result]


@dataclass(slots=True)
class _Entry(Generic[Result]):
    """A job on its way through the writer. It has an outcome by the time that its own drain has run."""

    job: Job[Result]
    results: list[Result]
    failure: BaseException | None = None
    over: Callable[[], None] | None = None  # called in the writer's thread when it was taken

    def outcome(self) -> Result:
        if self.failure is not None:
            raise self.failure
        if not self.results:
            raise Unavailable("turn_log", "the transaction was abandoned")
        return self.results[0]


class SqliteDatabase:
    """`async with` opens it; the file is created with mode 0600.

    `synchronous`: NORMAL survives `kill -9` of any process; FULL also survives the loss of power, at one disk flush
    per transaction. Opening raises `BadSetting` for a file that cannot be used and `Unavailable` for one that is busy.
    """

    def __init__(self, path: Path, *, synchronous: Literal["NORMAL", "FULL"] = "NORMAL") -> None:
        self.path = path.resolve()
        self.owners = Owners(self.path.with_name(self.path.name + ".owners"))
        self.commits = 0  # transactions so far; over it, jobs show what the grouping saves
        self._synchronous = synchronous
        self._waiting: deque[_Entry[object]] = deque()
        self._writer: ThreadPoolExecutor | None = None
        self._reader: ThreadPoolExecutor | None = None
        self._write_connection: sqlite3.Connection
        self._read_connection: sqlite3.Connection
        self._glance_connection: sqlite3.Connection
        self._posting: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        writer = ThreadPoolExecutor(1, thread_name_prefix="turn-log-writer")
        reader = ThreadPoolExecutor(1, thread_name_prefix="turn-log-reader")
        with ExitStack() as undo:
            undo.callback(writer.shutdown, wait=False)
            undo.callback(reader.shutdown, wait=False)
            await asyncio.get_running_loop().run_in_executor(writer, self._open)
            undo.pop_all()
        self._writer, self._reader = writer, reader
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What waits is still written. Turns that we leave open become `unknown` to whoever looks next."""
        if self._writer is None or self._reader is None:
            return
        writer, reader = self._writer, self._reader
        self._writer = self._reader = None
        loop = asyncio.get_running_loop()
        if self._posting is not None:
            self._posting.cancel()
            self._post(writer)
        self._glance_connection.close()
        await loop.run_in_executor(reader, self._read_connection.close)
        await loop.run_in_executor(writer, self._write_connection.close)
        self.owners.leave()
        reader.shutdown(wait=False)
        writer.shutdown(wait=False)

    async def write(self, job: Job[Result]) -> Result:
        """Run `job` in a transaction, committed on return. Raises `Unavailable`, and what the job raises."""
        entry: _Entry[Result] = _Entry(job, [])
        drained = self._enqueue(entry)
        await _bounded(drained)
        return entry.outcome()

    def post(self, job: Job[object], *, then: Callable[[], None] | None = None) -> None:
        """Run `job` some time soon, after all that was written before. Nobody hears how it went.

        `then` is called on the loop when it is over, or when it was not even begun, since too much is waiting.
        """
        if self._writer is None or len(self._waiting) >= WAITING_JOBS_MAX:
            if then is not None:
                then()
            return
        loop = asyncio.get_running_loop()

        def over() -> None:
            if then is not None and not loop.is_closed():
                loop.call_soon_threadsafe(then)

        self._waiting.append(_Entry(job, [], over=over))
        if self._posting is None:
            self._posting = loop.call_later(POST_SECONDS, self._post, self._writer)

    def _post(self, writer: ThreadPoolExecutor) -> None:
        self._posting = None
        writer.submit(self._drain)

    async def glance(self, job: Job[Result]) -> Result:
        """Run `job`, some statements by a key, here and now. Raises `Unavailable`.

        Where the file is not to be had at once, which is seldom, it waits like any other read.
        """
        if self._reader is None:
            raise Unavailable("turn_log", "it is closed")
        try:
            return job(self._glance_connection)
        except sqlite3.Error:
            return await self.read(job)

    async def read(self, job: Job[Result]) -> Result:
        """Run `job` on one consistent view of the database. Raises `Unavailable`."""
        if self._reader is None:
            raise Unavailable("turn_log", "it is closed")
        return await _bounded(self._reader.submit(self._read, job))

    def _enqueue(self, entry: _Entry[Result]) -> Future[None]:
        """Each entry brings a drain of its own, so it is taken by that one at the latest, usually by an earlier one."""
        if self._writer is None:
            raise Unavailable("turn_log", "it is closed")
        if len(self._waiting) >= WAITING_JOBS_MAX:
            raise Unavailable("turn_log", f"more than {WAITING_JOBS_MAX} writes are waiting")
        self._waiting.append(entry)  # type: ignore[arg-type]  # the queue never looks into a result
        return self._writer.submit(self._drain)

    def _drain(self) -> None:
        """Everything that waits, also what came meanwhile, in as many transactions as it takes."""
        while batch := [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_JOBS_MAX))]:
            self._commit(batch)

    def _commit(self, batch: Sequence[_Entry[object]]) -> None:
        connection = self._write_connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for entry in batch:
                _attempt(connection, entry)
            connection.execute("COMMIT")
            self.commits += 1
        except sqlite3.Error as error:
            for entry in batch:
                entry.failure = _translated(error)
        finally:
            if connection.in_transaction:
                for entry in batch:
                    entry.results.clear()
                connection.execute("ROLLBACK")
            for entry in batch:
                if entry.over is not None:
                    entry.over()

    def _read(self, job: Job[Result]) -> Result:
        connection = self._read_connection
        try:
            connection.execute("BEGIN")
            return job(connection)
        except sqlite3.Error as error:
            raise _translated(error) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _open(self) -> None:
        if sqlite3.sqlite_version_info < SQLITE_OLDEST:
            raise BadSetting(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed")
        try:
            self.owners.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with setting_up(self.owners.folder), ExitStack() as undo:
                self.owners.enter()
                undo.callback(self.owners.leave)
                self._open_connections()
                undo.pop_all()
        except OSError as error:
            raise BadSetting(
                f"cannot use {self.path} for the turn log: {error.strerror}; name another place"
            ) from error
        except sqlite3.OperationalError as error:
            if "unable to open" in str(error):
                raise BadSetting(
                    f"cannot open {self.path} for the turn log: check its rights, or name another"
                ) from error
            raise _translated(error) from error
        except sqlite3.DatabaseError as error:
            raise BadSetting(
                f"{self.path} is damaged or no SQLite database ({error}): move it and its -wal file away and start "
                "again, or put back a copy; what was not learnt yet can be read out of it with `sqlite3 FILE .recover`"
            ) from error

    def _open_connections(self) -> None:
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        self.path.chmod(0o600)  # -wal and -shm take the mode of the file
        writing = _connect(self.path)
        try:
            mode = writing.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise BadSetting(f"{self.path} lies where SQLite cannot keep a write-ahead log: name a local disk")
            writing.execute(f"PRAGMA synchronous = {self._synchronous}")
            writing.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_MAX}")
            create_tables(writing, str(self.path))
            reading = _connect(self.path)
            reading.execute("PRAGMA query_only = ON")
            glancing = _connect(self.path, seconds_max=0.0)
            glancing.execute("PRAGMA query_only = ON")
        except (sqlite3.Error, MemproxyError):
            writing.close()
            raise
        self._write_connection, self._read_connection, self._glance_connection = writing, reading, glancing


def _connect(path: Path, *, seconds_max: float = BUSY_SECONDS_MAX) -> sqlite3.Connection:
    """Transactions are begun by us alone (isolation_level None); each connection stays with the thread that uses it."""
    return sqlite3.connect(path, timeout=seconds_max, isolation_level=None, check_same_thread=False)


def _attempt(connection: sqlite3.Connection, entry: _Entry[object]) -> None:
    """Run one job so that its refusal, or a value that SQLite cannot store, undoes that job alone."""
    connection.execute("SAVEPOINT job")
    try:
        entry.results.append(entry.job(connection))
    except (MemproxyError, ValueError, TypeError, OverflowError) as error:
        entry.failure = error
        connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")


async def _bounded(future: Future[Result]) -> Result:
    """Wait for the thread, at most `CALL_SECONDS_MAX`. Neither that nor a cancelled caller takes the job back."""
    try:
        async with asyncio.timeout(CALL_SECONDS_MAX):
            return await asyncio.shield(asyncio.wrap_future(future))
    except TimeoutError as error:
        raise Unavailable("turn_log", f"no answer within {CALL_SECONDS_MAX:.0f} s") from error


def _translated(error: sqlite3.Error) -> Unavailable:
    """SQLite's own words ("database or disk is full", "database is locked") name no content: they may be shown."""
    return Unavailable("turn_log", str(error))
