"""The configuration of vLLM Semantic Router, as its memory section alone and as its whole file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from written_settings import written_settings

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
ROUTER_FILE: dict[str, Any] = {
    "version": "v0.3",
    "routing": {"decisions": []},
    "global": {"services": {}, "stores": {"vector_store": {}, "memory": ROUTER_MEMORY}},
}
NAMED = (
    "backend disabled_models milvus.num_partitions valkey qdrant redis_cache embedding_model hybrid_search hybrid_mode "
    "adaptive_threshold quality_scoring reflection"
)


@pytest.mark.parametrize("where", ["memory", "global.stores.memory"])
def test_each_key_of_the_routers_memory_section_is_loaded_or_named(where: str, tmp_path: Path) -> None:
    written = {"memory": ROUTER_MEMORY} if where == "memory" else ROUTER_FILE
    memory = written_settings(tmp_path, **written).memory
    assert (memory.enabled, memory.auto_store, memory.extraction_batch_size) == (False, False, 3)
    assert (memory.default_retrieval_limit, memory.default_similarity_threshold) == (7, 0.4)
    assert (memory.milvus.address, memory.milvus.collection, memory.off_routes) == ("m:1", "c", ("/v1/embeddings",))
    unread = loader.unread_by_us(tmp_path / "settings.yaml")
    of_routing = () if where == "memory" else ("version", "routing", "global.services", "global.stores.vector_store")
    assert {one.key for one in unread} == {*of_routing, *(f"{where}.{key}" for key in NAMED.split())}
    assert "hush" not in str(unread)


def test_what_the_router_leaves_off_is_not_named_and_two_sections_are_refused(tmp_path: Path) -> None:
    off = {"backend": "milvus", "disabled_models": [], "hybrid_search": False, "embedding_model": ""}
    written_settings(tmp_path, memory=off)
    assert loader.unread_by_us(tmp_path / "settings.yaml") == []
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"memory": {}, "global": {"stores": {"memory": {}}}}, r"global\.stores\.memory"),
        ({"global": {"stores": {"memory": 5}}}, "expected keys with values"),
        ({"memory": {"valkey": 5}}, "expected keys with values"),
    ]
    for written, says in wrong:
        with pytest.raises(BadSetting, match=says):
            written_settings(tmp_path, **written)
