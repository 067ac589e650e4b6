"""`memproxy doctor` on a real Milvus server: what keeps it from the server, and what to do about it."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from memory_rows import memory
from milvus_kinds import PATIENT, prepared
from milvus_standalone import TOKEN, MilvusServer
from older_collections import older_collection
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from extproc.cli import memproxy
from memory.adapters.milvus import schema
from memory.adapters.milvus.store import MilvusStore
from memory.model import Change, ChangeKind, VectorOrigin
from memory.runtime.metrics import Metrics

DIMENSION = 384


def configured(folder: Path, collection: str, **rest: object) -> Path:
    file = folder / "memproxy.yaml"
    file.write_text(json.dumps({"memory": {"milvus": {"collection": collection}}, **rest}))
    return file


@pytest.mark.parametrize(
    ("token", "uri", "says"),
    [
        ("root:wrong", "", ["refuses the token", "MEMPROXY_MEMORY_MILVUS_TOKEN"]),
        (TOKEN, "http://127.0.0.1:1", ["milvus", "reached"]),
        (TOKEN, "", ["schema version 1", "memproxy migrate"]),
    ],
    ids=["wrong token", "not reachable", "older schema"],
)
def test_the_doctor_names_what_keeps_it_from_the_server(
    milvus_server: MilvusServer,
    collection: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    token: str,
    uri: str,
    says: list[str],
) -> None:
    monkeypatch.setenv("MEMPROXY_MEMORY_MILVUS_TOKEN", token)
    older_collection(milvus_server, collection, VectorOrigin("any", DIMENSION))
    code, found, printed = examined(tmp_path, collection, uri or milvus_server.uri)
    assert code == 1, printed
    assert found["level"] == "fail"
    assert [word for word in says if word not in found["says"] + found["advice"]] == [], found
    assert token not in printed


def test_the_doctor_warns_of_an_exact_index_of_too_many_rows(
    milvus_server: MilvusServer, collection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMPROXY_MEMORY_MILVUS_TOKEN", TOKEN)

    async def fill() -> None:
        address = milvus_server.address(collection, DIMENSION)
        vectors = np.full((1, DIMENSION), DIMENSION**-0.5, dtype=np.float32)
        async with MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT) as store:
            await (await prepared(store)).apply("ann", [Change(ChangeKind.CREATE, memory("m1"))], vectors)

    asyncio.run(fill())
    _, found, printed = examined(tmp_path, collection, milvus_server.uri)
    assert found["level"] == "ok", printed
    assert "log and object storage" in found["says"]
    monkeypatch.setattr(schema, "EXACT_ROWS_MAX", 0)
    _, found, printed = examined(tmp_path, collection, milvus_server.uri)
    assert found["level"] == "warn", printed
    assert "1 rows" in found["says"]
    assert "memproxy migrate" in found["advice"]


def test_the_doctor_warns_of_a_collection_whose_rows_the_server_deletes_after_a_time(
    milvus_server: MilvusServer, collection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMPROXY_MEMORY_MILVUS_TOKEN", TOKEN)
    examined(tmp_path, collection, milvus_server.uri)  # makes it
    with closing(milvus_server.client()) as client:
        client.alter_collection_properties(collection, {"collection.ttl.seconds": 86_400})
    _, found, printed = examined(tmp_path, collection, milvus_server.uri)
    assert found["level"] == "warn", printed
    assert "deletes each memory 86400 s after its last change" in found["says"]
    assert "collection.ttl.seconds" in found["advice"]


def examined(folder: Path, collection: str, uri: str) -> tuple[int, dict[str, str], str]:
    """The exit code of `memproxy doctor`, what it says of Milvus, and all that it printed."""
    ports = dict.fromkeys(("port", "api_port", "envoy_admin_port", "metrics_port"), 0)
    settings = {"data_dir": str(folder / "data"), "models_dir": str(folder / "models"), **ports}
    (folder / "data").mkdir(exist_ok=True)
    config = configured(folder, collection, milvus_uri=uri, **settings)
    result = CliRunner().invoke(memproxy, ["doctor", "--config", str(config), "--json"])
    [found] = [one for one in json.loads(result.stdout)["checks"] if one["check"] == "milvus"]
    return result.exit_code, found, result.output
