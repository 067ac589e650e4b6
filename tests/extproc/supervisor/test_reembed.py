"""`memproxy reembed` as a command: what it prints, what it refuses, and what it leaves when a part is away."""

from __future__ import annotations

import asyncio
import resource
import shutil
from pathlib import Path

import pytest
from foreign_embeddings import running_foreign_embeddings
from milvus_lite_server import MilvusLiteServer
from reembed_command import OLD, Place, stored

from extproc.supervisor.locks_and_ports import data_directory
from memory.adapters.sqlite.database import SqliteDatabase
from memory.model import VectorOrigin

DIMENSION = 24
NEW = VectorOrigin("the new one", DIMENSION)


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


@pytest.mark.full("runs of the command, each a start")
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


@pytest.mark.full("runs of the command, each a start")
async def test_another_model_with_vectors_of_the_same_length_is_another_model(place: Place) -> None:
    async with running_foreign_embeddings(dimension=OLD.dimension) as server:
        place.configure(server.url, OLD.dimension)
        assert (await place.run("--json")).shown["embedded"] == 120


@pytest.mark.full("runs of the command, each a start")
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


async def test_a_data_directory_that_is_not_there_is_named_and_not_made(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.configure("http://127.0.0.1:1", DIMENSION)
    refused = await place.run()
    assert refused.code == 2
    assert str(place.data) in refused.stderr
    assert not place.data.exists()


@pytest.mark.full("runs of the command, each a start")
async def test_a_milvus_that_is_away_or_whose_disk_is_full_loses_nothing(place: Place) -> None:
    async with running_foreign_embeddings(dimension=DIMENSION) as embeddings:
        place.configure(embeddings.url, DIMENSION, milvus_uri="http://127.0.0.1:1")
        away = await place.run()
        assert away.code == 1
        assert "milvus is unavailable" in away.stderr
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


@pytest.mark.full("runs of the command, each a start")
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
