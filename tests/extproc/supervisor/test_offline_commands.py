"""Commands that have the data for themselves: what they print, what they refuse, and what they leave when cut short."""

from __future__ import annotations

import asyncio
import resource
import shutil
from pathlib import Path

import pytest
from foreign_embeddings import running_foreign_embeddings
from milvus_lite_server import MilvusLiteServer
from postgres_server import postgres_server
from reembed_command import OLD, Place, stored
from words_left import files_with

from extproc.supervisor.locks_and_ports import data_directory
from memory.adapters.sql.erasures import SqlErasures
from memory.adapters.sql.postgres_database import PostgresDatabase, prepare_tables
from memory.adapters.sql.postgres_pool import PostgresAddress
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.model import VectorOrigin
from memory.model.erasures import ErasureRequest
from memory.ports import MemoryFilter

DIMENSION = 24
NEW = VectorOrigin("the new one", DIMENSION)
USER = "user-who-leaves-7f3a"
commands = pytest.mark.full("runs of commands, each a start")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Filled once; nobody writes into this one."""
    place = Place(tmp_path_factory.mktemp("filled"))
    asyncio.run(place.fill(*stored(120)))
    return place


@pytest.fixture
def place(filled: Place, tmp_path: Path) -> Place:
    shutil.copytree(filled.data, Place(tmp_path).data)
    return Place(tmp_path)


@commands
async def test_a_dry_run_says_how_many_and_how_long_and_the_run_does_it_and_says_so(place: Place) -> None:
    snapshot = place.data / "snapshots" / "of-somebody"
    snapshot.parent.mkdir()
    snapshot.write_bytes(b"of old vectors")
    async with running_foreign_embeddings(dimension=DIMENSION) as server:
        place.configure(server.url, DIMENSION)
        dry = await place.run("--dry-run")
        assert dry.code == 0, dry.stderr
        assert dry.stdout.startswith("would embed 120 of 120 memories again, in about ")
        assert str(OLD) in dry.stdout
        assert str(NEW) in dry.stdout
        assert snapshot.exists()
        assert len(await place.records(OLD, "ann")) == 120
        done = await place.run()
        assert done.stdout.startswith("embedded 120 of 120 memories again")
        assert "120/120" in done.stderr  # the bar
        assert not snapshot.exists()
        assert (await place.run()).stdout.startswith("nothing to do: all 120 memories")
    assert len(await place.records(NEW, "ann")) == 120


@commands
async def test_it_refuses_to_run_beside_an_up_or_a_part_that_runs_alone(place: Place) -> None:
    place.configure("http://127.0.0.1:1", DIMENSION)
    with data_directory(place.data):
        refused = await place.run()
    assert refused.code == 2
    assert "memproxy up" in refused.stderr
    async with SqliteDatabase(place.data / "turns.sqlite"):
        refused = await place.run()
    assert refused.code == 2
    assert "stop them" in refused.stderr
    assert len(await place.records(OLD, "ann")) == 120


async def test_where_there_is_nothing_it_is_named_and_not_made(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.configure("http://127.0.0.1:1", DIMENSION)
    refused = await place.run()
    assert refused.code == 2
    assert str(place.data) in refused.stderr
    assert not place.data.exists()
    place.data.mkdir()
    assert (await place.run(part="compact")).stdout == "nothing to do: there is no turn log yet\n"


@commands
async def test_a_milvus_whose_disk_is_full_loses_nothing(place: Place) -> None:
    async with running_foreign_embeddings(dimension=DIMENSION) as embeddings:
        server = MilvusLiteServer(place.data / "milvus")
        server.start()
        try:
            place.configure(embeddings.url, DIMENSION, milvus_uri=server.uri)
            assert server._process is not None
            limits = resource.prlimit(server._process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(server._process.pid, resource.RLIMIT_FSIZE, (10_000, limits[1]))
            full = await place.run()
            assert full.code == 1
            assert "milvus is unavailable" in full.stderr
        finally:
            server.kill()
        assert len(await place.records(OLD, "ann")) == 120
        place.configure(embeddings.url, DIMENSION)
        assert (await place.run("--json")).shown["memories"] == 120
    assert len(await place.records(NEW, "ann")) == 120


@commands
async def test_a_part_that_embeds_otherwise_ends_at_its_start_and_the_doctor_says_why(place: Place) -> None:
    server = MilvusLiteServer(place.data / "milvus")
    server.start()
    try:
        async with running_foreign_embeddings(dimension=DIMENSION) as embeddings:
            place.configure(embeddings.url, DIMENSION, milvus_uri=server.uri)
            worker = await place.run(part="worker")
            assert worker.code == 2
            doctor = await place.run(part="doctor")
            assert doctor.code == 1
            [line] = [line for line in doctor.stdout.splitlines() if line.startswith("FAIL") and "milvus" in line]
            for said in (worker.stderr, line):
                for words in (str(OLD), str(NEW), "memproxy reembed"):
                    assert words in said
    finally:
        server.kill()


async def erase(place: Place) -> None:
    """The rows are gone, and bytes of them are in the files of the store and of the turn log."""
    await place.fill(*stored(40, user_id=USER), *stored(20, user_id="bob"))
    async with place.store(OLD) as store:
        await store.delete(USER, await store.ids(MemoryFilter(USER, status=None, with_raw=True)))
    async with SqliteDatabase(place.data / "turns.sqlite") as database:
        for number in range(50):
            words = f"{USER} said number {number} " * 100
            await database.write(
                lambda c, words=words: c.raw.execute("INSERT INTO opted_out_users VALUES (?, 1.0)", (words,))
            )
        await database.write(lambda c: c.raw.execute("DELETE FROM opted_out_users"))
        await SqlErasures(database).begun(USER, ErasureRequest("e1", 1.0, 1.0, {"memories": 40}))


@commands
async def test_compact_ends_erasures_that_wait_for_a_rewriting_and_loses_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.data.mkdir()
    place.configure("http://127.0.0.1:9", OLD.dimension, model=OLD.model)
    await erase(place)
    assert {Path(one).parts[0] for one in files_with([place.data], [USER])} >= {"milvus"}
    dry = (await place.run("--dry-run", "--json", part="compact")).shown
    assert (dry["is_dry_run"], dry["erasures"]) == (True, 1)
    done = await place.run(part="compact")
    assert done.code == 0, done.stderr
    assert "erasures that waited for it: 1" in done.stdout
    assert "MiB" in done.stderr  # the bar
    assert files_with([place.data], [USER]) == []
    async with SqliteDatabase(place.data / "turns.sqlite") as database:
        found = await SqlErasures(database).get(USER, "e1")
        assert found is not None
        assert found.rewritten_at is not None
        refused = await place.run(part="compact")
        assert refused.code != 0
        assert "1 other processes of memproxy" in refused.stderr
    assert len(await place.records(OLD, "bob")) == 20
    again = (await place.run("--json", part="compact")).shown
    assert again["erasures"] == 0
    assert again["turns_sqlite_bytes"]["before"] == again["turns_sqlite_bytes"]["after"]


@commands
async def test_on_postgresql_compact_writes_the_tables_anew_and_ends_the_erasures(tmp_path: Path) -> None:
    place, server = Place(tmp_path), postgres_server()
    place.data.mkdir()
    place.configure("http://127.0.0.1:9", OLD.dimension, model=OLD.model, database_url=server.url)
    await place.fill(*stored(20, user_id="bob"))
    prepare_tables(PostgresAddress(server.url))
    server.empty()
    async with PostgresDatabase(PostgresAddress(server.url)) as database:
        await SqlErasures(database).begun(USER, ErasureRequest("e1", 1.0, 1.0, {"memories": 40}))
    dry = (await place.run("--dry-run", "--json", part="compact")).shown
    assert (dry["erasures"], dry["tables_bytes"]["before"] > 0) == (1, True)
    done = await place.run(part="compact")
    assert done.stdout.startswith("wrote the tables anew, from "), done.stderr
    assert "erasures that waited for it: 1" in done.stdout
    assert (await place.run("--json", part="compact")).shown["erasures"] == 0
    assert len(await place.records(OLD, "bob")) == 20
