"""Looks for strings in every row of our tables on PostgreSQL. The server looks; no row goes over the network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg

from memory.adapters.file_scan import forms_of
from memory.adapters.sql.postgres_errors import translated
from memory.adapters.sql.postgres_pool import SCHEMA, PostgresAddress
from memory.ports.erasures import PlaceReport

POSTGRES = "postgres"
SEARCHED = "every column of every row of memproxy's tables, after they were written anew"
SCAN_SECONDS_MAX = 300.0
_OPTIONS = f"-c search_path={SCHEMA} -c statement_timeout={SCAN_SECONDS_MAX * 1000:.0f}"
_LOOK = """
SELECT count(*), coalesce(sum(octet_length(line)), 0),
    coalesce(bool_or(EXISTS (SELECT 1 FROM unnest(%s::text[]) AS needle WHERE strpos(line, needle) > 0)), FALSE)
FROM (SELECT CAST(found AS TEXT) AS line FROM {table} AS found) AS lines
"""


class PostgresScan:
    """`memory.ports.erasures.PlaceScan`."""

    def __init__(self, address: PostgresAddress) -> None:
        self._conninfo = address.conninfo(options=_OPTIONS)

    async def scan(self, wanted: Sequence[str]) -> PlaceReport:
        return await asyncio.to_thread(self._scan, _needles(wanted))

    def _scan(self, needles: list[str]) -> PlaceReport:
        items = size = 0
        found_in = []
        try:
            with psycopg.connect(self._conninfo) as connection:
                tables: list[Any] = connection.execute(
                    "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename", (SCHEMA,)
                ).fetchall()
                for (table,) in tables:
                    row = connection.execute(_LOOK.format(table=table), (needles,)).fetchone()
                    assert row is not None, "an aggregate gives one row"
                    items, size = items + int(row[0]), size + int(row[1])
                    found_in += [f"rows of {table}"] if row[2] else []
        except psycopg.Error as error:
            raise translated(error) from error
        return PlaceReport(POSTGRES, SEARCHED, items, size, tuple(found_in))


def _needles(wanted: Sequence[str]) -> list[str]:
    """As a row looks that is cast to a text: bytes in hexadecimal digits, quotation marks and backslashes doubled."""
    needles = set()
    for text in wanted:
        for form in forms_of(text):
            needles.add(form.hex())
            try:
                needles.add(form.decode().replace("\\", "\\\\").replace('"', '""'))
            except UnicodeDecodeError:
                continue
    return sorted(needle for needle in needles if "\0" not in needle)
