"""Looks for an id in every row of our tables on PostgreSQL."""

from __future__ import annotations

from typing import Any

import psycopg

from memory.adapters.sql.postgres_errors import translating
from memory.adapters.sql.postgres_pool import SCHEMA, PostgresAddress
from memory.adapters.whole_ids import WholeId
from memory.model.erasures import PlaceReport

POSTGRES = "postgres"
SEARCHED = "every column of every row of memproxy's tables, from which their files were written anew"
ROWS_AT_ONCE = 1_000


def tables_scanned(address: PostgresAddress, wanted: WholeId) -> PlaceReport:
    """Raises `Unavailable`."""
    rows, found = 0, list[str]()
    with translating(), psycopg.connect(address.conninfo(options=f"-c search_path={SCHEMA}")) as connection:
        tables: list[Any] = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename", (SCHEMA,)
        ).fetchall()
        for (table,) in tables:
            with connection.cursor(name="scan") as cursor:  # on the server: no table is held in memory
                cursor.itersize = ROWS_AT_ONCE
                holds = False
                for row in cursor.execute(f"SELECT * FROM {table}"):  # noqa: S608 - ours
                    rows, holds = rows + 1, holds or wanted.is_in(row)
            found += [f"rows of {table}"] if holds else []
    return PlaceReport(POSTGRES, SEARCHED, rows, tuple(found))
