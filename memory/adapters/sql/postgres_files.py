"""Rewrites the tables on PostgreSQL, whose files keep what was deleted until then, and the server's statistics of them,
which have values of rows. The server's own log, its replicas and its backups are not within reach of a client: they
forget with time, as their operator has set. Looks for an id in every row of the tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from memory.adapters.sql.postgres_pool import SCHEMA, PostgresAddress, translating
from memory.adapters.sql.sqlite_compacting import FileSizes
from memory.adapters.whole_ids import WholeId
from memory.errors import Unavailable
from memory.model.erasures import PlaceReport

POSTGRES = "postgres"
SEARCHED = "every column of every row of memproxy's tables, from which their files were written anew"
ROWS_AT_ONCE = 1_000
TABLE_BYTES_MAX = 256 << 20  # as for a file of SQLite; a larger one waits for `memproxy compact`
REWRITE_SECONDS_MAX = 120.0  # of one table: nobody reads or writes it meanwhile
_OPTIONS = f"-c search_path={SCHEMA} -c lock_timeout=3000 -c client_min_messages=error -c statement_timeout="
_TABLES = """
SELECT relname, pg_total_relation_size(pg_class.oid) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = %s AND relkind = 'r' ORDER BY relname
"""


class PostgresRewriting:
    """`memory.ports.erasures.FileRewriting`, by `VACUUM (FULL, ANALYZE)` of each table."""

    def __init__(self, address: PostgresAddress, *, bytes_max: int = TABLE_BYTES_MAX) -> None:
        """`bytes_max`: of one table with its indexes; a larger one would block others for too long."""
        self._address = address
        self._bytes_max = bytes_max

    async def refuse_in_vain(self) -> None:
        for name, size in await asyncio.to_thread(table_sizes, self._address):
            if size > self._bytes_max:
                raise Unavailable(
                    "turn_log",
                    f"the table {SCHEMA}.{name} has {size >> 20} MiB: writing it anew would block others for too long; "
                    "stop memproxy and call `memproxy compact`",
                )
        await asyncio.to_thread(self._try_smallest)

    async def rewrite(self) -> None:
        await self.refuse_in_vain()
        await asyncio.to_thread(rewrite_tables, self._address, seconds_max=REWRITE_SECONDS_MAX)

    def _try_smallest(self) -> None:
        with _rewriting(self._address, REWRITE_SECONDS_MAX) as connection:
            _rewrite(connection, "schema_version")


def table_sizes(address: PostgresAddress) -> list[tuple[str, int]]:
    """Of each table with its indexes, in bytes. Raises `Unavailable`."""
    with translating(), psycopg.connect(address.conninfo()) as connection:
        return connection.execute(_TABLES, (SCHEMA,)).fetchall()


def rewrite_tables(
    address: PostgresAddress, *, seconds_max: float = 0.0, advance: Callable[[int, int], None] = lambda *_: None
) -> FileSizes:
    """All, however large. `seconds_max`: of one; 0 if nobody waits for it. `advance` is called with the MiB that are
    done, of how many. Raises `Unavailable`, and may be repeated.
    """
    tables, done = table_sizes(address), 0
    before = sum(size for _, size in tables)
    with _rewriting(address, seconds_max) as connection:
        for name, size in tables:
            _rewrite(connection, name)
            done += size
            advance(done >> 20, before >> 20)
        connection.execute("VACUUM (FULL) pg_catalog.pg_statistic")  # left out unless we own the database
    return FileSizes(before, sum(size for _, size in table_sizes(address)))


@contextmanager
def _rewriting(address: PostgresAddress, seconds_max: float) -> Iterator[psycopg.Connection[Any]]:
    options = f"{_OPTIONS}{seconds_max * 1000:.0f}"
    with translating(), psycopg.connect(address.conninfo(options=options), autocommit=True) as connection:
        yield connection


def _rewrite(connection: psycopg.Connection[Any], table: str) -> None:
    """Raises `Unavailable` where the server leaves it out, which it says by a warning only."""
    file = "SELECT pg_relation_filenode(CAST(%s AS regclass))"
    before = connection.execute(file, (table,)).fetchone()
    connection.execute(f"VACUUM (FULL, ANALYZE) {table}")
    if connection.execute(file, (table,)).fetchone() == before:
        raise Unavailable(
            "turn_log",
            f"the server leaves out VACUUM (FULL) of {SCHEMA}.{table}: let memproxy's role own the tables, or GRANT "
            "MAINTAIN ON ALL TABLES to it (PostgreSQL 17 and later); an engine without it keeps what was deleted",
        )


def tables_scanned(address: PostgresAddress, wanted: WholeId) -> PlaceReport:
    """Raises `Unavailable`."""
    rows, found = 0, list[str]()
    with translating(), psycopg.connect(address.conninfo(options=f"-c search_path={SCHEMA}")) as connection:
        tables: list[Any] = connection.execute(_TABLES, (SCHEMA,)).fetchall()
        for table, _ in tables:
            with connection.cursor(name="scan") as cursor:  # on the server: no table is held in memory
                cursor.itersize = ROWS_AT_ONCE
                holds = False
                for row in cursor.execute(f"SELECT * FROM {table}"):  # noqa: S608 - ours
                    rows, holds = rows + 1, holds or wanted.is_in(row)
            found += [f"rows of {table}"] if holds else []
    return PlaceReport(POSTGRES, SEARCHED, rows, tuple(found))
