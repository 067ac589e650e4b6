"""What only a PostgreSQL server can do to a turn log: go away, meet other processes, be of another version or kind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psycopg
import pytest
from postgres_server import ROLE, PostgresServer, own_postgres_server, postgres_server
from turn_logs import START, ManualClock, a_turn, ids_of, lease_at, tell
from words_left import files_with

from memory.adapters.sql import beating_owners
from memory.adapters.sql import ledger as sql_ledger
from memory.adapters.sql.beating_owners import DEAD_SECONDS, LATE_SECONDS, Watch, living_owners
from memory.adapters.sql.erasures import SqlWriteBarrier, is_closed
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.migrations import VERSION
from memory.adapters.sql.postgres_database import PostgresDatabase, _refused, check_server, prepare_tables
from memory.adapters.sql.postgres_files import PostgresRewriting, rewrite_tables, tables_scanned
from memory.adapters.sql.postgres_pool import SCHEMA, STATEMENT_SECONDS_MAX, PostgresAddress, PostgresPool
from memory.adapters.sql.snapshots import SqlSnapshots
from memory.adapters.sql.statements import Connection, Statement
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.adapters.whole_ids import WholeId
from memory.errors import BadSetting, Conflict, Late, Unavailable, Unusable
from memory.model import TurnStatus

ANSWER_SECONDS_MAX = 30.0  # until a server that is back is found; only ends a hang
ADD = Statement("tests.add", "UPDATE users SET revision = revision + 1 WHERE user_id = :user_id RETURNING revision")
READ = Statement("tests.read", "SELECT revision FROM users WHERE user_id = :user_id")
MAKE = Statement("tests.make", "INSERT INTO users (user_id, revision, known_since) VALUES (:user_id, :revision, 0)")
SET = Statement("tests.set", "UPDATE users SET revision = :revision WHERE user_id = :user_id")
FAIL = Statement("tests.fail", "SELECT 1 / 0")


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresServer]:
    """A server that tests kill."""
    with own_postgres_server() as server:
        yield server


@pytest.fixture
def server() -> PostgresServer:
    """The shared one, empty."""
    shared = postgres_server()
    prepare_tables(PostgresAddress(shared.url))
    shared.empty()
    return shared


@pytest.fixture
async def database(server: PostgresServer) -> AsyncIterator[PostgresDatabase]:
    async with PostgresDatabase(PostgresAddress(server.url)) as opened:
        yield opened


async def eventually_open(log: SqlTurnLog, turn_id: str) -> None:
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        while True:
            with suppress(Unavailable):
                return await log.open(a_turn(turn_id))
            await asyncio.sleep(0.05)


async def test_what_was_acknowledged_survives_kill_9_and_clients_go_on(mortal: PostgresServer) -> None:
    async with PostgresDatabase(PostgresAddress(mortal.url)) as database:
        log = SqlTurnLog(database, clock=ManualClock())
        for number in range(20):
            await tell(log, f"t{number}")
        mortal.kill()
        with pytest.raises(Unavailable, match="PostgreSQL"):
            await log.open(a_turn("meanwhile"))
        with pytest.raises(Unavailable, match="PostgreSQL"):
            await log.depth(now=START)
        mortal.start()
        await eventually_open(log, "after")
        found = [turn.id async for turn in log.turns("ann")]
    assert found[:20] == [f"t{number}" for number in range(20)]
    assert "after" in found


async def test_snapshots_are_gone_after_kill_9_of_the_server_and_are_written_again(mortal: PostgresServer) -> None:
    async with PostgresDatabase(PostgresAddress(mortal.url)) as database:
        clock = ManualClock()
        log, snapshots = SqlTurnLog(database, clock=clock), SqlSnapshots(database, bytes_max=1 << 20, clock=clock)
        await snapshots.write("ann", b"a set")
        assert await snapshots.read("ann") == b"a set"
        mortal.kill()
        mortal.start()
        await eventually_open(log, "after that")
        assert await snapshots.read("ann") is None
        await snapshots.write("ann", b"another")
        assert await snapshots.read("ann") == b"another"


async def test_a_write_under_way_when_the_server_is_killed_is_told_or_there(mortal: PostgresServer) -> None:
    """Whatever the caller was told was written is there, once."""
    async with PostgresDatabase(PostgresAddress(mortal.url)) as database:
        log, acknowledged = SqlTurnLog(database, clock=ManualClock()), []

        async def tell_on() -> None:
            for number in range(100_000):
                try:
                    await log.append(a_turn(f"k{number}", status=TurnStatus.CLOSED))
                except Unavailable:
                    return
                acknowledged.append(f"k{number}")

        await asyncio.gather(tell_on(), asyncio.to_thread(mortal.kill))
        mortal.start()
        await eventually_open(log, "after this")
        found = [turn.id async for turn in log.turns("ann")]
    assert set(acknowledged) <= set(found)
    assert len(found) == len(set(found))


async def test_jobs_of_processes_that_meet_are_repeated_and_lose_nothing(server: PostgresServer) -> None:
    """Each reads what it then writes: without SERIALIZABLE, additions would be lost."""

    def add(connection: Connection) -> None:
        (revision,) = READ(connection, user_id="ann").fetchone()
        SET(connection, user_id="ann", revision=revision + 1)

    address = PostgresAddress(server.url)
    async with PostgresDatabase(address) as one, PostgresDatabase(address) as two:
        await one.write(lambda connection: MAKE(connection, user_id="ann", revision=0))
        for _ in range(20):
            await asyncio.gather(one.write(add), two.write(add))
        assert await one.read(lambda connection: READ(connection, user_id="ann").fetchone()) == (40,)


@pytest.mark.parametrize("again", ["read", "write"])
async def test_a_statement_that_a_failed_transaction_was_to_prepare_is_run_again(
    database: PostgresDatabase, again: str
) -> None:
    def look(connection: Connection) -> object:
        return READ(connection, user_id="ann").fetchone()

    def fail(connection: Connection) -> object:
        FAIL(connection)
        return look(connection)

    run = getattr(database, again)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await run(fail)
        for _ in range(5):  # from then on psycopg prepares it
            assert await run(look) is None


async def test_what_the_server_says_is_in_no_log(database: PostgresDatabase, caplog: pytest.LogCaptureFixture) -> None:
    def fail(connection: Connection) -> None:
        FAIL(connection)
        raise Conflict("before anybody looked")

    with pytest.raises(Conflict):
        await database.write(fail)
    assert caplog.text == "", "it may quote values"


async def test_a_read_by_key_ends_soon_beside_long_ones(server: PostgresServer, database: PostgresDatabase) -> None:
    """The longer ones wait for the lock for three seconds each, and are more than there are threads for them."""

    def look(connection: Connection) -> object:
        return READ(connection, user_id="ann").fetchone()

    with server.connect() as other, other.transaction():
        other.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
        longer = asyncio.gather(*(database.read(look) for _ in range(8)), return_exceptions=True)
        await asyncio.sleep(0)
        ended = await asyncio.gather(*(database.read_now(look) for _ in range(8)), return_exceptions=True)
        assert {(type(one), "too long (57014)" in str(one)) for one in ended} == {(Late, True)}
        assert not longer.done()
    assert None in await longer


async def test_no_lock_is_taken_behind_the_barrier(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction has looked for a barrier, and found none."""
    looked, goes_on, again, written = threading.Event(), threading.Event(), threading.Event(), asyncio.Event()

    def looks(connection: Connection, *, now: float) -> bool:
        found = is_closed(connection, now=now)
        (again if looked.is_set() else looked).set()
        goes_on.wait(ANSWER_SECONDS_MAX)
        return found

    async def write(ledger: SqlUserLedger) -> None:
        async with ledger.write("ann"):
            written.set()

    monkeypatch.setattr(sql_ledger, "is_closed", looks)
    address, clock = PostgresAddress(server.url), ManualClock()
    async with PostgresDatabase(address) as one, PostgresDatabase(address) as two, asyncio.TaskGroup() as group:
        writing = group.create_task(write(SqlUserLedger(two, clock=clock)))
        await asyncio.to_thread(looked.wait, ANSWER_SECONDS_MAX)
        async with SqlWriteBarrier(one, clock=clock).closed(seconds=10):
            goes_on.set()
            looking = group.create_task(asyncio.to_thread(again.wait, ANSWER_SECONDS_MAX))
            await asyncio.wait([writing, looking], return_when=asyncio.FIRST_COMPLETED)
            assert not written.is_set()
    assert written.is_set()


async def test_a_job_that_raises_or_cannot_be_stored_takes_no_other_along(database: PostgresDatabase) -> None:
    """Of its transaction. The text is not quoted."""

    def wrong(connection: Connection) -> None:
        ADD(connection, user_id="ann")
        raise KeyError("wrong")

    await database.write(lambda connection: MAKE(connection, user_id="ann", revision=0))
    jobs = [lambda connection: ADD(connection, user_id="ann").fetchone()] * 10
    jobs.insert(5, wrong)
    jobs.insert(8, partial(MAKE, user_id="se\0cret", revision=0))
    results = await asyncio.gather(*map(database.write, jobs), return_exceptions=True)
    refused, raised = results.pop(8), results.pop(5)
    assert (type(refused), type(raised)) == (Unusable, KeyError)
    assert "cret" not in str(refused)
    assert results == [(number,) for number in range(1, 11)]


def test_an_owner_is_dead_whose_number_stands_still_while_ours_goes_on() -> None:
    watch, at = Watch(), 0.0
    while at < DEAD_SECONDS:
        watch.look([("still", 7), ("beating", round(at))], at=at)
        assert not watch.is_still("still", at=at)
        at += 1.0
    watch.look([("still", 7), ("beating", round(at))], at=at)
    assert watch.is_still("still", at=at)
    assert not watch.is_still("beating", at=at)
    assert not watch.is_still("unknown", at=at)


def test_whoever_was_late_itself_takes_nobody_for_dead_before_it_has_watched_again() -> None:
    watch = Watch()
    for at in range(round(DEAD_SECONDS) + 1):
        watch.look([("other", 7)], at=float(at))
    assert watch.is_still("other", at=DEAD_SECONDS)
    assert not watch.is_still("other", at=DEAD_SECONDS + LATE_SECONDS + 0.1), "we have not looked for long"
    back = DEAD_SECONDS + 60.0
    watch.look([("other", 7)], at=back)
    assert not watch.is_still("other", at=back), "both were cut off, and the other is back as we are"


async def test_what_the_dead_held_is_free_for_others(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beating_owners, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(beating_owners, "DEAD_SECONDS", 0.5)
    address, clock = PostgresAddress(server.url), ManualClock()
    async with PostgresDatabase(address) as dying, PostgresDatabase(address) as living:
        await SqlTurnLog(dying, clock=clock).open(a_turn("of the dead"))
        await SqlTurnLog(living, clock=clock).open(a_turn("of the living"))
        dying.owners._is_left.set()  # its heart stops, as with kill -9
        async with PostgresDatabase(address) as worker:
            log = SqlTurnLog(worker, clock=clock)
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                while not await log.recover():
                    await asyncio.sleep(0.02)
            assert ids_of(await lease_at(log, START)) == ["of the dead"]
            async with SqlUserLedger(worker, clock=clock).write("ann"):
                assert living_owners(PostgresPool(address)) >= 2


def changed(server: PostgresServer, *statements: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def of(server: PostgresServer, database: str, role: str = ROLE) -> PostgresAddress:
    return PostgresAddress(server.url.removesuffix("postgres") + database, role)


def test_tables_of_a_newer_version_end_the_start(server: PostgresServer) -> None:
    changed(server, "CREATE DATABASE newer")
    assert prepare_tables(of(server, "newer")) == 0
    with psycopg.connect(of(server, "newer").conninfo(), autocommit=True) as connection:
        connection.execute("UPDATE schema_version SET version = %s", (VERSION + 1,))
    with pytest.raises(BadSetting, match=f"version {VERSION + 1}, this memproxy reads version {VERSION}"):
        prepare_tables(of(server, "newer"), migrates=True)


@pytest.mark.parametrize(
    ("name", "options", "then", "role", "words"),
    [
        ("foreign_owner", "", "CREATE ROLE guest LOGIN", "guest", "GRANT ALL ON SCHEMA memproxy"),
        ("latin", "ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'", "SELECT 1", ROLE, "LATIN1.*UTF8"),
        ("standby", "", "ALTER DATABASE standby SET default_transaction_read_only = on", ROLE, "name the primary"),
    ],
)
def test_a_database_that_cannot_be_used_ends_the_start_with_what_to_do(
    server: PostgresServer, name: str, options: str, then: str, role: str, words: str
) -> None:
    changed(server, f"CREATE DATABASE {name} {options}", then)
    with pytest.raises(BadSetting, match=words):
        prepare_tables(of(server, name, role))


@pytest.mark.parametrize("granted", ["SELECT", "SELECT, INSERT, UPDATE"])
async def test_a_role_without_a_right_is_told_the_grant_that_gives_it(server: PostgresServer, granted: str) -> None:
    name = f"partial_{granted.count(',')}"
    changed(server, f"CREATE DATABASE {name}", f'CREATE ROLE "the {name}" LOGIN')
    owner, role = of(server, name), of(server, name, f"the {name}")
    prepare_tables(owner)
    with psycopg.connect(owner.conninfo(), autocommit=True) as connection:
        connection.execute(f'GRANT USAGE ON SCHEMA {SCHEMA} TO "the {name}"')
        connection.execute(f'GRANT {granted} ON ALL TABLES IN SCHEMA {SCHEMA} TO "the {name}"')
        with pytest.raises(BadSetting, match=r"right to DELETE(, INSERT, UPDATE)? in \d+ tables") as refused:
            await PostgresDatabase(role).__aenter__()
        connection.execute(str(refused.value).partition("run ")[2])
    async with PostgresDatabase(role) as database:
        await tell(SqlTurnLog(database, clock=ManualClock()), "t0")


async def test_a_server_with_another_time_zone_says_the_same_time(server: PostgresServer) -> None:
    changed(server, "CREATE DATABASE kiritimati", "ALTER DATABASE kiritimati SET timezone = 'Pacific/Kiritimati'")
    async with PostgresDatabase(of(server, "kiritimati")) as far, PostgresDatabase(of(server, "postgres")) as near:
        assert abs(await far.server_time() - await near.server_time()) < 3_600


def test_a_pooler_that_shares_connections_is_refused_with_what_to_name() -> None:
    refused = _refused(psycopg.OperationalError("FATAL:  unsupported startup parameter: options"))
    assert "name the PostgreSQL server itself" in str(refused)


@pytest.mark.parametrize("kept", ["", f"-c search_path={SCHEMA}", f"-c statement_timeout={STATEMENT_SECONDS_MAX:.0f}s"])
def test_a_pooler_that_drops_the_options_of_a_connection_is_refused_likewise(server: PostgresServer, kept: str) -> None:
    """PgBouncer with `ignore_startup_parameters = options`: what it hands on is a session without them."""
    options = PostgresAddress(server.url).conninfo(options=kept)
    with psycopg.connect(options) as session, pytest.raises(BadSetting, match="name the PostgreSQL server itself"):
        check_server(session)


def test_a_server_without_tls_is_refused_where_an_authority_is_named(server: PostgresServer, tmp_path: Path) -> None:
    (tmp_path / "authority.pem").touch()
    with pytest.raises(BadSetting, match="certificate_authority"):
        prepare_tables(PostgresAddress(server.url, certificate_authority=str(tmp_path / "authority.pem")))


async def test_what_was_deleted_is_in_no_row_and_once_rewritten_in_no_file_of_a_table(server: PostgresServer) -> None:
    address, word = PostgresAddress(server.url), "Quetzalbimxford"
    async with PostgresDatabase(address) as database:
        log = SqlTurnLog(database, clock=ManualClock())
        await log.append(a_turn("42", status=TurnStatus.CLOSED, text=f"my parrot is {word}, and 7 is red"))
        await log.append(a_turn("1426", status=TurnStatus.CLOSED, user="metadata"))
        found = {one: tables_scanned(address, WholeId(one)).found_in for one in ("42", "426", "7", "ada", "metadata")}
        assert {one: "rows of turns" in held for one, held in found.items()} == {
            **dict.fromkeys(("42", "metadata"), True),
            **dict.fromkeys(("426", "7", "ada"), False),
        }
        assert (found["426"], found["ada"]) == ((), ())
        changed(server, "ANALYZE")  # as the server does by itself: its statistics have values of rows
        await log.messages.delete_turns("ann", ["42"])
        await PostgresRewriting(address, bytes_max=1 << 30).rewrite()
    report = tables_scanned(address, WholeId("42"))
    assert ("rows of turns" in report.found_in, report.items > 0) == (False, True)
    assert files_with(server.table_files(), [word]) == []


async def test_tables_that_the_role_may_not_rewrite_are_not_taken_for_rewritten(server: PostgresServer) -> None:
    """The server leaves them out, and only warns."""
    changed(server, "CREATE DATABASE foreign_tables", "CREATE ROLE writer LOGIN")
    owner, writer = of(server, "foreign_tables"), of(server, "foreign_tables", "writer")
    prepare_tables(owner)
    with psycopg.connect(owner.conninfo(), autocommit=True) as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO writer")
        connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO writer")
        with pytest.raises(Unavailable, match=r"leaves out.*GRANT MAINTAIN"):
            await PostgresRewriting(writer).refuse_in_vain()
        with pytest.raises(Unavailable, match=r"leaves out.*GRANT MAINTAIN"):
            rewrite_tables(writer)
        connection.execute(f"GRANT MAINTAIN ON ALL TABLES IN SCHEMA {SCHEMA} TO writer")
        await PostgresRewriting(writer).rewrite()


async def test_a_table_that_is_too_large_to_be_rewritten_is_named(server: PostgresServer) -> None:
    with pytest.raises(Unavailable, match=r"the table memproxy\..*`memproxy compact`"):
        await PostgresRewriting(PostgresAddress(server.url), bytes_max=1).refuse_in_vain()


def test_with_nobody_else_there_tables_are_rewritten_however_large_and_long(server: PostgresServer) -> None:
    def files() -> set[int]:
        with server.connect() as connection:
            return {
                file
                for name in server.tables()
                for (file,) in connection.execute("SELECT pg_relation_filenode(%s)", (name,))
            }

    address, before, seen = PostgresAddress(server.url), files(), list[tuple[int, int]]()
    sizes = rewrite_tables(address, advance=lambda done, of: seen.append((done, of)))
    assert not before & files(), "all of them"
    assert sizes.before >= sizes.after > 0
    assert seen[-1] == (sizes.before >> 20,) * 2
