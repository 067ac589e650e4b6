"""Commands on a real Milvus server: what keeps the doctor from it, and an index that a collection has outgrown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from memory_rows import DIMENSION, memory, put
from milvus_kinds import PATIENT, prepared
from milvus_standalone import TOKEN, MilvusServer
from older_collections import older_collection
from prometheus_client import CollectorRegistry
from pymilvus.client.types import LoadState
from typer.testing import CliRunner

from extproc.cli import memproxy
from memory.adapters.milvus import schema
from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.adapters.milvus.store import MilvusStore
from memory.errors import Unavailable
from memory.model import VectorOrigin
from memory.runtime.metrics import Metrics
from memory.service.reembedding import Migrate

ORIGIN = VectorOrigin("the same", DIMENSION)
COUNT = 150  # more than one batch
REASON = "an index that is made for fewer memories"
TOKEN_VARIABLE = "MEMPROXY_MEMORY_MILVUS_TOKEN"

Command = Callable[..., str]


@pytest.fixture
def run(milvus_server: MilvusServer, collection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """What a command prints to standard output."""
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    embedding = {"endpoint": "http://127.0.0.1:1", "model": ORIGIN.model, "dimension": DIMENSION}
    memory_settings = {"milvus": {"collection": collection, "dimension": DIMENSION}, "embedding": embedding}
    ports = dict.fromkeys(("port", "api_port", "envoy_admin_port", "metrics_port"), 0)
    folders = {"data_dir": str(tmp_path / "data"), "models_dir": str(tmp_path / "models")}
    (tmp_path / "data").mkdir()
    config = tmp_path / "memproxy.yaml"

    def run(*words: str, uri: str = milvus_server.uri) -> str:
        config.write_text(json.dumps({"milvus_uri": uri, "memory": memory_settings, **folders, **ports}))
        done = CliRunner().invoke(memproxy, [words[0], "--config", str(config), *words[1:]])
        assert words[0] == "doctor" or done.exit_code == 0, done.output
        return done.stdout

    return run


def examined(printed: str) -> dict[str, str]:
    """What the doctor says of Milvus."""
    [found] = [one for one in json.loads(printed)["checks"] if one["check"] == "milvus"]
    return found


@pytest.mark.parametrize(
    ("token", "uri", "says"),
    [
        ("root:wrong", "", ["refuses the token", TOKEN_VARIABLE]),
        (TOKEN, "http://127.0.0.1:1", ["milvus", "reached"]),
        (TOKEN, "", ["schema version 1", "memproxy migrate"]),
    ],
    ids=["wrong token", "not reachable", "older schema"],
)
def test_the_doctor_names_what_keeps_it_from_the_server(
    milvus_server: MilvusServer,
    collection: str,
    run: Command,
    monkeypatch: pytest.MonkeyPatch,
    token: str,
    uri: str,
    says: list[str],
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, token)
    older_collection(milvus_server, collection, ORIGIN)
    printed = run("doctor", "--json", uri=uri or milvus_server.uri)
    found = examined(printed)
    assert found["level"] == "fail", printed
    assert [word for word in says if word not in found["says"] + found["advice"]] == [], found
    assert token not in printed


def test_the_doctor_warns_of_rows_that_expire(milvus_server: MilvusServer, collection: str, run: Command) -> None:
    run("doctor", "--json")  # makes it
    with closing(milvus_server.client()) as client:
        client.alter_collection_properties(collection, {"collection.ttl.seconds": 86_400})
    found = examined(run("doctor", "--json"))
    assert found["level"] == "warn", found
    assert "deletes each memory 86400 s after its last change" in found["says"]
    assert "collection.ttl.seconds" in found["advice"]


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


def test_only_migrate_acts_and_what_it_had_copied_is_neither_dropped_nor_loaded_by_others(
    milvus_server: MilvusServer, collection: str, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(filled(milvus_server, collection))
    found = examined(run("doctor", "--json"))
    assert (found["level"], "log and object storage" in found["says"]) == ("ok", True), found
    assert run("migrate").startswith("nothing to do")
    assert run("reembed").startswith("nothing to do")
    monkeypatch.setattr(schema, "EXACT_ROWS_MAX", COUNT - 1)
    asyncio.run(cut_off(milvus_server, collection))
    copy = f"{collection}__2"
    client = milvus_server.client()
    client.release_collection(copy)

    found = examined(run("doctor", "--json"))
    assert found["level"] == "warn", found
    assert f"{COUNT} rows" in found["says"]
    assert "memproxy migrate" in found["advice"]
    is_loaded = client.get_load_state(copy)["state"] == LoadState.Loaded
    assert not is_loaded, "the doctor looks at the collection in use alone"
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
