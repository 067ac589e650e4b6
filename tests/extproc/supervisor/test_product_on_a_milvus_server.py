"""The whole way on a real Milvus server: `memproxy up --milvus-uri`, a chat, what it taught, and `memproxy doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from milvus_standalone import TOKEN, MilvusServer
from older_collections import older_collection
from product import running_product
from typer.testing import CliRunner
from upstream import RecordingUpstream

from extproc.cli import memproxy
from memory.adapters.milvus.partitions import all_partitions
from memory.model import VectorOrigin

USER = "rower"


def configured(folder: Path, collection: str, **rest: object) -> Path:
    file = folder / "memproxy.yaml"
    file.write_text(json.dumps({"memory": {"milvus": {"collection": collection}}, **rest}))
    return file


@pytest.mark.stack
@pytest.mark.slow("starts the whole product")
def test_what_one_session_said_is_recalled_in_another(
    milvus_server: MilvusServer,
    collection: str,
    upstream: RecordingUpstream,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MEMPROXY_MEMORY_MILVUS_TOKEN", TOKEN)
    config = configured(tmp_path, collection)
    words = ("--milvus-uri", milvus_server.uri)
    with running_product(tmp_path / "data", *words, upstream=upstream.url, config=config) as product:
        assert product.children("milvus-lite") == []
        assert product.ports["milvus"] == milvus_server.port
        product.chat("I row on the river on Thursdays.", USER, session_id="first")
        assert product.flush(USER)["pending"] == 0
        asked = product.ask("On which day do I row?", USER, session_id="second")
        assert asked.headers["x-memory-status"] == "used"
        assert "Thursdays" in upstream.last_chat().body.decode()
        assert TOKEN not in product.log()
    client = milvus_server.client()
    assert set(all_partitions()) < set(client.list_partitions(collection))
    client.close()


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
    older_collection(milvus_server, collection, VectorOrigin("any", 384))
    ports = dict.fromkeys(("port", "api_port", "envoy_admin_port", "metrics_port"), 0)
    settings = {"data_dir": str(tmp_path / "data"), "models_dir": str(tmp_path / "models"), **ports}
    (tmp_path / "data").mkdir()
    config = configured(tmp_path, collection, milvus_uri=uri or milvus_server.uri, **settings)
    result = CliRunner().invoke(memproxy, ["doctor", "--config", str(config), "--json"])
    assert result.exit_code == 1, result.output
    [found] = [one for one in json.loads(result.stdout)["checks"] if one["check"] == "milvus"]
    assert found["level"] == "fail"
    assert [word for word in says if word not in found["says"] + found["advice"]] == [], found
    assert token not in result.stdout
