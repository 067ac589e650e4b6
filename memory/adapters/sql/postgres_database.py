"""Jobs on PostgreSQL: a few threads with a connection each, and transactions that are repeated when they met another.

A job that writes runs in a `SERIALIZABLE` transaction: it sees and does what it would alone, as on SQLite. Where two
transactions met, one fails with 40001 and its job runs again, a bounded number of times, after a short random pause.
Reads see one snapshot (`REPEATABLE READ READ ONLY`) and never fail for that. Jobs that write
run in one thread per process and in order (`job_writer`), so that only those of different processes meet. Reads by key,
which chats wait for, have threads and connections of their own, whose statements end soon where the server is slow.

The tables are made in an empty database, and migrated by `memproxy migrate`.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, LiteralString, Self, TypeVar

import psycopg
from psycopg import errors

from memory.adapters.sql.beating_owners import BeatingOwners
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.dialect import postgres_schema
from memory.adapters.sql.job_writer import CALL_SECONDS_MAX, OF_ONE_JOB, Batch, Job, JobWriter, bounded
from memory.adapters.sql.migrations import VERSION, schema, steps_from
from memory.adapters.sql.postgres_pool import (
    CHAT_OPTIONS,
    FORGOTTEN,
    MET_ANOTHER,
    SCHEMA,
    STATEMENT_SECONDS_MAX,
    PostgresAddress,
    PostgresConnection,
    PostgresPool,
    is_gone,
    translated,
    translating,
)
from memory.errors import BadSetting, Unavailable

OLDEST_VERSION = 140000  # PostgreSQL 14, in numbers as the server says them
LOCK_KEY = 0x6D70_7478  # of the advisory lock: one process at a time makes or changes the tables
TABLE_LOCK_SECONDS_MAX = 60  # that a step waits for somebody else's transaction
DIGEST_KEY_BYTES = 32
RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")  # to each table; numbers of rows need none to their sequence
_MISSING_RIGHTS = """
SELECT quote_ident(current_user), string_agg(DISTINCT needed, ', '), min(relname), count(DISTINCT relname)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace CROSS JOIN unnest(CAST(%s AS text[])) AS needed
WHERE nspname = %s AND relkind = 'r' AND NOT has_table_privilege(pg_class.oid, needed)
"""
POOLER = (
    "database_url: this is a pooler that shares connections between transactions, or drops their options (PgBouncer): "
    "name the PostgreSQL server itself; memproxy keeps its own connections, at most ten a process"
)


def prepare_tables(address: PostgresAddress, *, migrates: bool = False) -> int:
    """Create the tables in an empty database. Returns the version that was there before, 0 if none was.

    `migrates`: also lead older tables here. Raises `BadSetting` for a database that cannot be used, `Unavailable`.
    """
    with _session(address) as connection:
        version = _usable(connection, migrates=migrates)
        if version == VERSION:
            return version
        connection.execute("SET LOCAL statement_timeout = 0")  # large tables take their time
        connection.execute("SET LOCAL lock_timeout = 0")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_KEY,))
        connection.execute(f"SET LOCAL lock_timeout = '{TABLE_LOCK_SECONDS_MAX}s'")
        version = _usable(connection, migrates=migrates)  # another process may have been at it
        if not version:
            _create(connection)
        elif version < VERSION:
            for statement in steps_from(version):
                connection.execute(postgres_schema(statement))
            connection.execute("UPDATE schema_version SET version = %s", (VERSION,))
        return version


def version_of_tables(address: PostgresAddress) -> int:
    """Likewise, and changes nothing."""
    with _session(address) as connection:
        return _version(connection)


@contextmanager
def _session(address: PostgresAddress) -> Iterator[psycopg.Connection[Any]]:
    """One transaction on a server that can be used. Raises `BadSetting`, `Unavailable`."""
    try:
        with psycopg.connect(address.conninfo(), autocommit=False) as connection:
            check_server(connection)
            yield connection
    except psycopg.OperationalError as error:
        raise _refused(error) or translated(error) from error
    except errors.InsufficientPrivilege as error:
        raise BadSetting(
            f"database_url: the role has no rights to the schema {SCHEMA}: let a role that may create it run `memproxy "
            f"migrate` once, then GRANT ALL ON SCHEMA {SCHEMA} and on its tables and sequences to the role of memproxy"
        ) from error
    except errors.ReadOnlySqlTransaction as error:
        raise BadSetting("database_url: this server only reads (a standby): name the primary") from error
    except psycopg.Error as error:
        raise translated(error) from error


def check_server(connection: psycopg.Connection[Any]) -> None:
    """Raises `BadSetting`."""
    if connection.info.server_version < OLDEST_VERSION:
        raise BadSetting(
            f"PostgreSQL {OLDEST_VERSION // 10000} or later is needed; "
            f"this server is {connection.info.server_version // 10000}"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise BadSetting(
            f"database_url: the database has the encoding {encoding}: "
            "create one with ENCODING 'UTF8' TEMPLATE template0"
        )
    settings = "SELECT current_setting('search_path'), current_setting('statement_timeout')"  # of `postgres_pool`
    if connection.execute(settings).fetchone() != (SCHEMA, f"{STATEMENT_SECONDS_MAX:.0f}s"):
        raise BadSetting(POOLER)


def _usable(connection: psycopg.Connection[Any], *, migrates: bool) -> int:
    """The version of the tables. Raises `BadSetting` for one that we neither read nor change."""
    version = _version(connection)
    if version > VERSION:
        raise BadSetting(
            f"database_url: its tables have version {version}, this memproxy reads version {VERSION}: "
            "install the newer memproxy, or name another database"
        )
    if 0 < version < VERSION and not migrates:
        raise BadSetting(
            f"database_url: its tables have version {version}, this memproxy reads version {VERSION}: "
            "run `memproxy migrate` once no older memproxy runs"
        )
    return version


def _create(connection: psycopg.Connection[Any]) -> None:
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    for statement in schema():
        connection.execute(postgres_schema(statement))
    connection.execute("INSERT INTO digest_keys (key) VALUES (%s)", (secrets.token_bytes(DIGEST_KEY_BYTES),))
    connection.execute("CREATE TABLE schema_version (version BIGINT NOT NULL)")
    connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (VERSION,))


def _version(connection: psycopg.Connection[Any]) -> int:
    """Of the tables; 0 if there are none. Raises `BadSetting` for a role that may not read and write them all."""
    found = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.schema_version",)).fetchone()
    if found is None or found[0] is None:
        return 0
    role, rights, table, tables = connection.execute(_MISSING_RIGHTS, (list(RIGHTS), SCHEMA)).fetchone() or (None,) * 4
    if rights:
        raise BadSetting(
            f"database_url: the role {role} has no right to {rights} in {tables} tables (as {SCHEMA}.{table}): let "
            f"their owner run GRANT ALL ON ALL TABLES IN SCHEMA {SCHEMA} TO {role}"
        )
    row = connection.execute("SELECT version FROM schema_version").fetchone()
    assert row is not None, "the table was made with one row"
    return int(row[0])


def _refused(error: psycopg.OperationalError) -> BadSetting | None:
    """What somebody has to set right. The messages are those of libpq and hold no content."""
    text = str(error)
    if "startup parameter" in text:
        return BadSetting(POOLER)
    if "read-write" in text or "read-only" in text:
        return BadSetting("database_url: none of its servers takes writes: name the primary")
    if "certificate" in text or "SSL" in text:
        return BadSetting(
            "database_url: its certificate is not signed by memory.database.certificate_authority, or it has no TLS: "
            "name the PEM file of the authority that signed it, and the server by a name in it"
        )
    if "does not exist" in text or "authentication" in text or "no pg_hba.conf entry" in text:
        reason = text.strip().splitlines()[-1].partition("FATAL:")[2].strip() or "the server refuses the role"
        return BadSetting(f"database_url: {reason}")
    return None


# Threads of a process, with a connection each. The writer has one, the heartbeat, and what is asked of other owners.
READERS, CHAT_READERS = 3, 4
WAITING_READS_MAX = 2_000  # of either; beyond it calls are refused
TRIES_MAX = 20  # of a transaction that meets others
PAUSE_SECONDS_MAX = 0.05  # before the next try, random
WRITING: LiteralString = "BEGIN ISOLATION LEVEL SERIALIZABLE"
READING: LiteralString = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

Result = TypeVar("Result")


class PostgresDatabase(SqlDatabase):
    """Open with `async with`.

    Opening creates the tables in an empty database. Raises `BadSetting` for one that cannot be used, `Unavailable`.
    """

    owners: BeatingOwners

    def __init__(self, address: PostgresAddress, *, introduction: str = "") -> None:
        """`introduction`: what other processes may read of this one while it lives."""
        self.address = address
        self._pool = PostgresPool(address)
        self.owners = BeatingOwners(self._pool, introduction=introduction)
        self._readers = _Readers(self._pool, READERS)
        self._chat_readers = _Readers(PostgresPool(address, options=CHAT_OPTIONS), CHAT_READERS)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(prepare_tables, self.address)
        await asyncio.to_thread(self.owners.enter)
        self._writer = JobWriter(self._commit)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Pending jobs are still written. Turns that stay open become `unknown` for other processes."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        await writer.close(self.owners.leave)
        for readers in (self._chat_readers, self._readers):
            await asyncio.to_thread(readers.close)

    async def read(self, job: Job[Result]) -> Result:
        return await self._readers.run(lambda connection: _in_transaction(connection, READING, job))

    async def read_now(self, job: Job[Result]) -> Result:
        """Without a transaction around it."""
        return await self._chat_readers.run(job)

    async def server_time(self) -> float:
        def now(connection: PostgresConnection) -> float:
            row = connection.raw.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
            assert row is not None, "a SELECT without FROM gives one row"
            return float(row[0])

        return await self._readers.run(now)

    def _commit(self, batch: Batch) -> None:
        """All in one transaction; each in its own if one of them raises, or they keep meeting those of others."""
        if len(batch) > 1 and self._commit_together(batch):
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
                except (*MET_ANOTHER, FORGOTTEN):
                    if attempt + 1 == tries or time.monotonic() > give_up_at:
                        raise
                    time.sleep(random.uniform(0, PAUSE_SECONDS_MAX) * min(1.0, attempt / 4))  # noqa: S311  # no secret
        raise AssertionError("the last try returned or raised")


class _Readers:
    """Threads with a connection each, for jobs that change nothing."""

    def __init__(self, pool: PostgresPool, threads: int) -> None:
        self._pool = pool
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="turn-log-reader")
        self._waiting = 0
        self._is_closed = False

    def close(self) -> None:
        """Blocks until those under way are done. Closes the pool."""
        self._is_closed = True
        self._threads.shutdown()
        self._pool.close()

    async def run(self, job: Callable[[PostgresConnection], Result]) -> Result:
        if self._is_closed:
            raise Unavailable("turn_log", "it is closed")
        if self._waiting >= WAITING_READS_MAX:
            raise Unavailable("turn_log", f"more than {WAITING_READS_MAX} reads are waiting")
        self._waiting += 1
        future = self._threads.submit(self._without_a_change, job)
        try:
            return await bounded(future)
        finally:
            future.cancel()  # unless it runs by now: nobody waits for it any more, and the server may be slow
            self._waiting -= 1

    def _without_a_change(self, job: Callable[[PostgresConnection], Result]) -> Result:
        """Once more where the connection was one that the server had closed meanwhile, or cannot be used again."""
        with translating():
            try:
                with self._pool.connection() as connection:
                    return job(connection)
            except psycopg.Error as error:
                if not is_gone(error) and not isinstance(error, FORGOTTEN):
                    raise
            with self._pool.connection() as connection:
                return job(connection)


def _in_transaction(connection: PostgresConnection, begin: LiteralString, job: Job[Result]) -> Result:
    """The server is waited for where the job looks at rows, and in the end."""
    raw = connection.raw
    try:
        with raw.pipeline():
            raw.execute(begin)
            result = job(connection)
            raw.execute("COMMIT")
        return result
    finally:
        if not raw.closed and raw.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            raw.execute("ROLLBACK")
