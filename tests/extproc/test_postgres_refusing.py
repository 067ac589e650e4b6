"""PostgreSQL takes nothing for a while: its disk is full, it has no connection left, another server takes its place.

What was said meanwhile waits in the filter and is written afterwards, and the log says what to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import psycopg
import pytest
from postgres_server import ROLE, PostgresServer, own_postgres_server, postgres_server
from prometheus_client import CollectorRegistry
from turn_logs import ManualClock, a_turn, tell

from extproc.retrying_writes import RetryingWrites
from memory.adapters.sql.postgres_database import PostgresDatabase
from memory.adapters.sql.postgres_pool import PostgresAddress
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.errors import Unavailable
from memory.runtime.metrics import Metrics

pytestmark = pytest.mark.full("databases and servers of their own on PostgreSQL")
ANSWER_SECONDS_MAX = 120.0  # only ends a hang
FULL = """
CREATE FUNCTION memproxy.refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON memproxy.turns EXECUTE FUNCTION memproxy.refuse()
"""


def changed(server: PostgresServer, *statements: str, database: str = "postgres") -> None:
    url = server.url.removesuffix("postgres") + database
    with psycopg.connect(url, user=ROLE, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@asynccontextmanager
async def opened(server: PostgresServer, database: str, role: str = ROLE) -> AsyncIterator[SqlTurnLog]:
    """On a database of its own, which the role owns."""
    changed(server, f"CREATE DATABASE {database} OWNER {role}")
    address = PostgresAddress(server.url.removesuffix("postgres") + database, role)
    async with PostgresDatabase(address) as opened:
        yield SqlTurnLog(opened, clock=ManualClock())


async def refused(log: SqlTurnLog, words: str) -> None:
    """Return once it refuses a turn, and says so."""
    while True:
        try:
            await log.open(a_turn("tried"))
        except Unavailable as error:
            if words in str(error):
                return
        await asyncio.sleep(0.02)


async def comes_through(log: SqlTurnLog, words: str, end: Callable[[], None]) -> list[str]:
    """The turns at the end. The trouble has begun; `words`: what the log says of it; `end`: ends it."""
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        await refused(log, words)
        is_waiting = asyncio.Event()
        writes = RetryingWrites(lambda _: is_waiting.set(), Metrics(CollectorRegistry()).turns_waiting)
        async with asyncio.TaskGroup() as group:
            group.create_task(writes.write(partial(log.open, a_turn("said meanwhile"))))
            await is_waiting.wait()
            await asyncio.to_thread(end)
        return [turn.id async for turn in log.turns("ann")]


async def test_a_full_disk_takes_nothing_and_answers_what_is_read() -> None:
    server = postgres_server()
    async with opened(server, "disk") as log:
        await tell(log, "before")
        changed(server, FULL, database="disk")
        assert [turn.id async for turn in log.turns("ann")] == ["before"]
        end = partial(changed, server, "DROP TRIGGER full_disk ON memproxy.turns", database="disk")
        assert "said meanwhile" in await comes_through(log, "its disk is full (53100)", end)


async def test_without_a_connection_left_the_log_says_what_to_raise() -> None:
    server = postgres_server()
    changed(server, "CREATE ROLE limited LOGIN")
    async with opened(server, "limits", "limited") as log:
        await tell(log, "before")
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'limited'"
        changed(server, "ALTER ROLE limited CONNECTION LIMIT 0", ended)
        end = partial(changed, server, "ALTER ROLE limited CONNECTION LIMIT -1")
        assert await comes_through(log, "raise max_connections", end) == ["before", "said meanwhile"]


async def test_after_a_failover_the_standby_has_all_and_takes_what_is_said() -> None:
    """The primary only reads from then on. It lives: connections to it are left, and none is made."""
    with own_postgres_server() as first, own_postgres_server(follows=first) as second:
        changed(first, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        both = PostgresAddress(first.url.replace("/postgres", f",127.0.0.1:{second.port}/postgres"))
        async with PostgresDatabase(both) as database:
            log = SqlTurnLog(database, clock=ManualClock())
            await asyncio.gather(*(tell(log, f"t{number}") for number in range(20)))
            changed(first, "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
            found = await comes_through(log, "it only reads", partial(changed, second, "SELECT pg_promote()"))
        with psycopg.connect(second.url, user=ROLE) as connection:
            there = connection.execute("SELECT id FROM memproxy.turns").fetchall()
    assert {*found} == {one for (one,) in there} >= {"said meanwhile", *(f"t{number}" for number in range(20))}
