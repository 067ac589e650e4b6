"""The configuration of vLLM Semantic Router, as its memory section alone and as its whole file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memory.errors import BadSetting
from memory.settings import loader

ROUTER_MEMORY: dict[str, Any] = {  # every key of its section; values of ours, so that they are told from defaults
    "enabled": False,
    "backend": "valkey",
    "auto_store": False,
    "disabled_routes": ["/v1/embeddings"],
    "disabled_models": ["qwen3"],
    "milvus": {"address": "m:1", "collection": "c", "dimension": 384, "num_partitions": 16},
    "valkey": {"host": "v", "password": "hush", "index_m": 16},
    "qdrant": {"host": "q", "api_key": "hush"},
    "redis_cache": {"enabled": True, "password": "hush"},
    "embedding_model": "bert",
    "extraction_batch_size": 3,
    "default_retrieval_limit": 7,
    "default_similarity_threshold": 0.4,
    "hybrid_search": True,
    "hybrid_mode": "rerank",
    "adaptive_threshold": True,
    "quality_scoring": {"prune_threshold": 0.1},
    "reflection": {"enabled": True, "block_patterns": ["x"]},
}
ROUTER_FILE = {"version": "v0.3", "routing": {"decisions": []}, "global": {"services": {}, "stores": {}}}
NAMED = (
    "backend disabled_models milvus.num_partitions valkey qdrant redis_cache embedding_model hybrid_search hybrid_mode "
    "adaptive_threshold quality_scoring reflection"
)


def loaded(text: str, folder: Path) -> loader.Settings:
    (folder / "memproxy.yaml").write_text(text, encoding="utf-8")
    return loader.load(folder / "memproxy.yaml", {}, {})


def refusal(text: str, folder: Path) -> str:
    with pytest.raises(BadSetting) as caught:
        loaded(text, folder)
    return str(caught.value)


@pytest.mark.parametrize("where", ["memory", "global.stores.memory"])
def test_each_key_of_the_routers_memory_section_is_loaded_or_named(where: str, tmp_path: Path) -> None:
    whole = {**ROUTER_FILE, "global": {"services": {}, "stores": {"vector_store": {}, "memory": ROUTER_MEMORY}}}
    text = json.dumps({"memory": ROUTER_MEMORY} if where == "memory" else whole)
    memory = loaded(text, tmp_path).memory
    assert (memory.enabled, memory.auto_store, memory.extraction_batch_size) == (False, False, 3)
    assert (memory.default_retrieval_limit, memory.default_similarity_threshold) == (7, 0.4)
    assert (memory.milvus.address, memory.milvus.collection, memory.off_routes) == ("m:1", "c", ("/v1/embeddings",))
    unread = loader.unread_by_us(tmp_path / "memproxy.yaml")
    of_routing = () if where == "memory" else ("version", "routing", "global.services", "global.stores.vector_store")
    assert {one.key for one in unread} == {*of_routing, *(f"{where}.{key}" for key in NAMED.split())}
    assert "hush" not in str(unread)


def test_what_the_router_leaves_off_is_not_named_and_two_sections_are_refused(tmp_path: Path) -> None:
    off = {"backend": "milvus", "disabled_models": [], "hybrid_search": False, "embedding_model": ""}
    loaded(json.dumps({"memory": off}), tmp_path)
    assert loader.unread_by_us(tmp_path / "memproxy.yaml") == []
    twice = {"memory": {}, "global": {"stores": {"memory": {}}}}
    assert "global.stores.memory" in refusal(json.dumps(twice), tmp_path)
    assert "expected keys with values" in refusal("global: {stores: {memory: 5}}", tmp_path)
    assert "expected keys with values" in refusal("memory: {valkey: 5}", tmp_path)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("memory: {hybrid_serch: true}", "memory.hybrid_search"),
        ("memory: {redis_cahce: {}}", "memory.redis_cache"),
        ("memory: {reflection: {algoritm: x}}", "memory.reflection.algorithm"),
        ("routng: {}", "routing"),
        ("global: {store: {}}", "global.stores"),
        ("global: {stores: {memroy: {}}}", "global.stores.memory"),
        ("global: {stores: {memory: {auto_stor: true}}}", "global.stores.memory.auto_store"),
        ("global: {stores: {memory: {valkey: {hots: x}}}}", "global.stores.memory.valkey.host"),
    ],
)
def test_a_key_with_a_slip_is_told_its_nearest_neighbour(text: str, nearest: str, tmp_path: Path) -> None:
    assert f"did you mean {nearest}?" in refusal(text, tmp_path)
