"""A collection with too many rows for its index: what the commands say of it, and none spoils another's work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from memory_rows import DIMENSION, memory, put
from milvus_kinds import PATIENT, prepared
from milvus_standalone import TOKEN, MilvusServer
from prometheus_client import CollectorRegistry
from pymilvus import MilvusClient
from pymilvus.client.types import LoadState
from typer.testing import CliRunner

from extproc.cli import memproxy
from memory.adapters.milvus import schema
from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.adapters.milvus.store import MilvusStore
from memory.errors import Unavailable
from memory.model import VectorOrigin
from memory.runtime.metrics import Metrics
from memory.service.migration import Migrate

ORIGIN = VectorOrigin("the same", DIMENSION)
COUNT = 150  # more than one batch
REASON = "an index that is made for fewer memories"


def configured(folder: Path, server: MilvusServer, collection: str) -> Path:
    embedding = {"endpoint": "http://127.0.0.1:1", "model": ORIGIN.model, "dimension": DIMENSION}
    memory_settings = {"milvus": {"collection": collection, "dimension": DIMENSION}, "embedding": embedding}
    settings = {"data_dir": str(folder / "data"), "milvus_uri": server.uri, "memory": memory_settings}
    file = folder / "memproxy.yaml"
    file.write_text(json.dumps({**settings, "models_dir": str(folder / "models")}))
    (folder / "data").mkdir()
    return file


async def filled(server: MilvusServer, collection: str) -> None:
    address = server.address(collection, DIMENSION, ORIGIN)
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT) as store:
        await put(await prepared(store), *(memory(f"m{number}") for number in range(COUNT)))


async def cut_off(server: MilvusServer, collection: str) -> None:
    """A migration that ends after some rows."""

    def cut(done: int, _: int) -> None:
        if done:
            raise Unavailable("milvus", "cut off by the test")

    async def nobody_else() -> None:
        return

    address = server.address(collection, DIMENSION, ORIGIN)
    async with MilvusReembedding(address, wanted=ORIGIN, metrics=Metrics(CollectorRegistry())) as store:
        with pytest.raises(Unavailable, match="cut off"):
            await Migrate(store, wanted=ORIGIN).run(advance=cut, check_alone=nobody_else)


Command = Callable[..., str]


@pytest.fixture
def run(milvus_server: MilvusServer, collection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """What a command prints to standard output."""
    monkeypatch.setenv("MEMPROXY_MEMORY_MILVUS_TOKEN", TOKEN)
    config = configured(tmp_path, milvus_server, collection)

    def run(*words: str) -> str:
        done = CliRunner().invoke(memproxy, [words[0], "--config", str(config), *words[1:]])
        assert words[0] == "doctor" or done.exit_code == 0, done.output
        return done.stdout

    return run


def whole(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def is_loaded(client: MilvusClient, name: str) -> bool:
    return bool(client.get_load_state(name)["state"] == LoadState.Loaded)


@pytest.mark.slow("makes two collections on a server")
def test_only_migrate_acts_and_what_it_had_copied_is_neither_dropped_nor_loaded_by_others(
    milvus_server: MilvusServer, collection: str, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole(filled(milvus_server, collection))
    assert run("migrate").startswith("nothing to do")
    assert run("reembed").startswith("nothing to do")
    monkeypatch.setattr(schema, "EXACT_ROWS_MAX", COUNT - 1)
    whole(cut_off(milvus_server, collection))
    copy = f"{collection}__2"
    client = milvus_server.client()
    client.release_collection(copy)

    [found] = [one for one in json.loads(run("doctor", "--json"))["checks"] if one["check"] == "milvus"]
    assert "memproxy migrate" in found["advice"]
    assert not is_loaded(client, copy), "the doctor looks at the collection in use alone"
    said = run("reembed")
    assert REASON in said
    assert "memproxy migrate" in said
    assert json.loads(run("reembed", "--json"))["migrate_is_needed"]
    assert client.has_collection(copy)

    planned = json.loads(run("migrate", "--dry-run", "--json"))
    assert (planned["reason"], planned["copied_before"]) == ("index", 100)
    assert REASON in run("migrate", "--dry-run")
    assert run("migrate").startswith(f"copied {COUNT - 100} of {COUNT} memories")
    assert run("migrate").startswith("nothing to do")
    assert not client.has_collection(collection)
    client.close()
