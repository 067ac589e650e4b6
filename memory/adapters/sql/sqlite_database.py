"""One SQLite file shared by processes of one host: a writer thread with group commit, and separate readers.

A transaction begins and ends inside the writer thread: none is ever open across an await. Reads use a connection and a
thread of their own and, thanks to the write-ahead log, never wait for a write; reads of microseconds run on the event
loop with a third connection, since a thread switch takes longer. Local disk only: locks and shared memory do not work
over a network file system.

A job runs in the writer thread inside a savepoint: an exception undoes that job alone and is raised to its caller
alone. Cancelling the caller does not stop its job: writes are atomic. SQLite's messages ("database is locked") hold no
content and are passed on.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, Self, TypeVar

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.dialect import sqlite_schema
from memory.adapters.sql.job_writer import OF_ONE_JOB, Batch, Entry, Job, JobWriter, bounded
from memory.adapters.sql.locked_owners import LockedOwners, setting_up
from memory.adapters.sql.migrations import OLDEST_VERSION, VERSION, schema, steps_from
from memory.adapters.sql.sqlite_compacting import copy_of
from memory.adapters.sql.statements import SqlRows, Statement, Value
from memory.errors import BadSetting, MemproxyError, Unavailable, Unusable

APPLICATION_ID = 0x6D70_7478  # "mptx": tells our file from any other SQLite file
SQLITE_OLDEST = (3, 39, 0)  # what the statements need; Python 3.11 usually brings a newer one
DIGEST_KEY_BYTES = 32


def prepare_tables(connection: sqlite3.Connection, path: str) -> None:
    """In one transaction. Raises `BadSetting` for a file that is not ours, or of a version from which nothing leads
    here.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection, path)
        if version is None:
            for statement in schema():
                connection.execute(sqlite_schema(statement))
            connection.execute("INSERT INTO digest_keys (key) VALUES (?)", (secrets.token_bytes(DIGEST_KEY_BYTES),))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        elif version != VERSION:
            if not OLDEST_VERSION <= version < VERSION:
                raise BadSetting(
                    f"{path} has version {version}, this memproxy reads version {VERSION}: "
                    "start the memproxy that wrote it again, or name another file"
                )
            for statement in steps_from(version):
                connection.execute(sqlite_schema(statement))
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection, path: str) -> int | None:
    """Of the tables in the file; None if it is empty."""
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        return None
    if int(connection.execute("PRAGMA application_id").fetchone()[0]) != APPLICATION_ID:
        raise BadSetting(f"{path} is a database of something else: name another file for the turn log")
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


BUSY_SECONDS_MAX = 5.0  # for the write lock, which another process holds for milliseconds
LOG_BYTES_MAX = 64 << 20  # the write-ahead log is truncated to this after a burst
REWRITE_BYTES_MAX = 256 << 20  # writing a larger file anew may take longer than other writers wait, which is 5 s
_NOW = "SELECT (julianday('now') - 2440587.5) * 86400"
OF_ONE_SQLITE_JOB = (*OF_ONE_JOB, *(sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.NotSupportedError))
OF_ONE_STATEMENT = frozenset(  # extended codes have the code in their last byte
    (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG)
)

Result = TypeVar("Result")


class SqliteConnection:
    """`memory.adapters.sql.statements.Connection`."""

    __slots__ = ("raw",)

    def __init__(self, raw: sqlite3.Connection) -> None:
        self.raw = raw

    def execute(self, statement: Statement, values: Mapping[str, Value]) -> SqlRows:
        return self.raw.execute(statement.sqlite, values)

    def executemany(self, statement: Statement, rows: Sequence[Mapping[str, Value]]) -> None:
        self.raw.executemany(statement.sqlite, rows)


class SqliteDatabase(SqlDatabase):
    """Open with `async with`; the file is created with mode 0600.

    `synchronous`: NORMAL survives `kill -9` of any process; FULL also a power failure, with one disk flush per
    transaction. Opening raises `BadSetting` for an unusable file and `Unavailable` for a busy one.
    """

    owners: LockedOwners

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        rewrite_bytes_max: int = REWRITE_BYTES_MAX,
        introduction: str = "",
    ) -> None:
        """`introduction`: what other processes may read of this one while it has the file open."""
        self.path = path.resolve()
        self.owners = LockedOwners(self.path.with_name(self.path.name + ".owners"), introduction=introduction)
        self.commits = 0  # transactions so far; jobs divided by commits shows the effect of grouping
        self._synchronous = synchronous
        self._rewrite_bytes_max = rewrite_bytes_max
        self._reader: ThreadPoolExecutor | None = None
        self._write_connection: sqlite3.Connection
        self._read_connection: sqlite3.Connection
        self._read_now_connection: sqlite3.Connection

    async def __aenter__(self) -> Self:
        writer = JobWriter(self._commit)
        reader = ThreadPoolExecutor(1, thread_name_prefix="turn-log-reader")
        with ExitStack() as undo:
            undo.callback(writer.thread.shutdown, wait=False)
            undo.callback(reader.shutdown, wait=False)
            await asyncio.get_running_loop().run_in_executor(writer.thread, self._open)
            undo.pop_all()
        self._writer, self._reader = writer, reader
        return self

    async def __aexit__(self, *_: object) -> None:
        """Pending jobs are still written. Turns that stay open become `unknown` for other processes."""
        if self._writer is None or self._reader is None:
            return
        writer, reader = self._writer, self._reader
        self._writer = self._reader = None
        self._read_now_connection.close()
        await asyncio.get_running_loop().run_in_executor(reader, self._read_connection.close)
        await writer.close(self._write_connection.close)
        self.owners.leave()
        reader.shutdown(wait=False)

    async def read_now(self, job: Job[Result]) -> Result:
        """On the event loop. If the file is locked, which is rare, it runs like any other read."""
        if self._reader is None:
            raise Unavailable("turn_log", "it is closed")
        try:
            return job(SqliteConnection(self._read_now_connection))
        except sqlite3.Error:
            return await self.read(job)

    async def read(self, job: Job[Result]) -> Result:
        if self._reader is None:
            raise Unavailable("turn_log", "it is closed")
        return await bounded(self._reader.submit(self._read, job))

    async def server_time(self) -> float:
        return await self.read(lambda _: float(self._read_connection.execute(_NOW).fetchone()[0]))

    async def rewrite(self) -> None:
        """Raises `Unavailable` also for a file that is too large.

        Overwriting what is deleted (`secure_delete`) leaves copies that SQLite made when it moved rows between pages,
        so the file is written anew; then the log is emptied. Writers of all processes wait meanwhile.
        """
        if self._writer is None:
            raise Unavailable("turn_log", "it is closed")
        await self.refuse_in_vain()
        await asyncio.shield(asyncio.wrap_future(self._writer.thread.submit(self._rewrite)))

    async def refuse_in_vain(self) -> None:
        size = self.path.stat().st_size
        if size > self._rewrite_bytes_max:
            raise Unavailable(
                "turn_log",
                f"{self.path.name} has {size >> 20} MiB: writing it anew would block others for too long; "
                "stop memproxy and call `memproxy compact`",
            )

    def _rewrite(self) -> None:
        connection = self._write_connection
        try:
            connection.execute("VACUUM")
            is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            raise Unavailable("turn_log", str(error)) from error
        if is_busy:
            raise Unavailable("turn_log", "somebody reads: its log cannot be emptied now")

    def _commit(self, batch: Batch) -> None:
        connection = self._write_connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for entry in batch:
                _attempt(connection, entry)
            connection.execute("COMMIT")
            self.commits += 1
        except sqlite3.Error as error:
            for entry in batch:
                entry.failure = Unavailable("turn_log", str(error))
        finally:
            if connection.in_transaction:
                for entry in batch:
                    entry.results.clear()
                connection.execute("ROLLBACK")

    def _read(self, job: Job[Result]) -> Result:
        connection = self._read_connection
        try:
            connection.execute("BEGIN")
            return job(SqliteConnection(connection))
        except sqlite3.Error as error:
            raise Unavailable("turn_log", str(error)) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _open(self) -> None:
        if sqlite3.sqlite_version_info < SQLITE_OLDEST:
            raise BadSetting(f"SQLite {sqlite3.sqlite_version} is too old: 3.39 or newer is needed")
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
            raise Unavailable("turn_log", str(error)) from error
        except sqlite3.DatabaseError as error:
            raise BadSetting(
                f"{self.path} is damaged or no SQLite database ({error}): move it and its -wal file away and start "
                "again, or put back a copy; what was not learnt yet can be read out of it with `sqlite3 FILE .recover`"
            ) from error

    def _open_connections(self) -> None:
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        writing = _connect(self.path)
        try:
            _version(writing, str(self.path))  # a file of something else stays as it is
            self.path.chmod(0o600)  # -wal and -shm take the mode of the file
            copy_of(self.path).unlink(missing_ok=True)  # of a compaction that was killed
            mode = writing.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise BadSetting(f"{self.path} lies where SQLite cannot keep a write-ahead log: name a local disk")
            writing.execute(f"PRAGMA synchronous = {self._synchronous}")
            writing.execute("PRAGMA secure_delete = ON")  # costs nothing that can be measured
            writing.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_MAX}")
            prepare_tables(writing, str(self.path))
            reading = _connect(self.path)
            reading.execute("PRAGMA query_only = ON")
            glancing = _connect(self.path, seconds_max=0.0)
            glancing.execute("PRAGMA query_only = ON")
        except (sqlite3.Error, MemproxyError):
            writing.close()
            raise
        self._write_connection, self._read_connection, self._read_now_connection = writing, reading, glancing


def _connect(path: Path, *, seconds_max: float = BUSY_SECONDS_MAX) -> sqlite3.Connection:
    """We begin all transactions ourselves (isolation_level None); each connection is used by one thread only."""
    return sqlite3.connect(path, timeout=seconds_max, isolation_level=None, check_same_thread=False)


def _attempt(connection: sqlite3.Connection, entry: Entry[object]) -> None:
    """Run one job so that an error, or a value that SQLite cannot store, undoes that job alone."""
    connection.execute("SAVEPOINT job")
    try:
        entry.results.append(entry.job(SqliteConnection(connection)))
    except OF_ONE_SQLITE_JOB as error:
        entry.failure = error
        connection.execute("ROLLBACK TO job")
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF not in OF_ONE_STATEMENT:
            raise  # of the whole database: full, locked, unreadable, damaged
        entry.failure = Unusable("turn_log", str(error))
        connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")
