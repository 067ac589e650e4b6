"""The configuration of vLLM Semantic Router as a file of ours: what it says about memory, and what it says in vain.

Pure. Its memory section stands in `memory`, or in `global.stores.memory` of its whole file, the rest of which is about
routing. Keys that mean the same here stay, others are named with what stands in for them. As of its commit 3d48f8c.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memory.errors import BadSetting
from memory.settings.catalogue import unknown
from memory.settings.tree import MemorySettings

FILE_KEYS = ("version", "listeners", "providers", "routing", "entrypoints", "recipes", "global")
GLOBAL_KEYS = ("router", "services", "stores", "integrations", "model_catalog")
STORE_KEYS = ("response_cache", "memory", "vector_store")
ROUTERS = "this is the router's"
_SERVER = "memories are on Milvus: memory.milvus or milvus_uri"
_RANKING = "nothing to set: meaning and words are always weighed together"
INSTEAD = {  # keys of its memory section without a counterpart, with what there is
    "backend": _SERVER,
    "disabled_models": "memory_config: {enabled: false} in the requests, or memory.off_routes",
    "valkey": _SERVER,
    "qdrant": _SERVER,
    "redis_cache": "memory.working_set and memory.snapshots, which are on",
    "embedding_model": "memory.embedding.model",
    "hybrid_search": _RANKING,
    "hybrid_mode": _RANKING,
    "adaptive_threshold": "relevance is decided from all features: leave out default_similarity_threshold",
    "quality_scoring": "memory.life",
    "reflection": "memory.token_budget, memory.secrets, and the checks of what is learnt",
    "milvus.num_partitions": "none is needed",
}
SECTIONS = {  # the keys below those that are sections
    "valkey": "host port database password timeout collection_prefix index_name dimension metric_type index_m "
    "index_ef_construction tls_enabled tls_ca_path tls_insecure_skip_verify",
    "qdrant": "host port api_key use_tls connect_timeout collection dimension",
    "redis_cache": "enabled address ttl_seconds db key_prefix password",
    "quality_scoring": "initial_strength_days prune_threshold max_memories_per_user",
    "reflection": "enabled algorithm max_inject_tokens recency_decay_days dedup_threshold block_patterns",
}


class Unread(NamedTuple):
    """A key that has no counterpart here. `instead`: what there is."""

    key: str
    instead: str


def without_router_keys(tree: Any, source: str) -> tuple[Any, list[Unread]]:  # noqa: ANN401 - whatever a file holds
    """The tree as ours, and what in it is not read. Raises `BadSetting` for what neither knows. `source`: the file."""
    if not isinstance(tree, Mapping):
        return tree, []
    ours: dict[Any, Any] = {key: value for key, value in tree.items() if key not in FILE_KEYS}
    unread = [Unread(key, ROUTERS) for key in tree if key in FILE_KEYS and key != "global"]
    memory, where = ours.get("memory"), "memory"
    if (found := _stores(tree.get("global"), unread, source)) is not None:
        if memory is not None:
            raise BadSetting("memory and global.stores.memory say the same; take one out")
        memory, where = found, "global.stores.memory"
    if isinstance(memory, Mapping):
        ours["memory"] = _memory(memory, where, unread, source)
    elif where != "memory":
        raise BadSetting(f"{where} ({source}): expected keys with values, got {memory!r:.80}")
    return ours, unread


def _stores(section: object, unread: list[Unread], source: str) -> object:
    """The memory section of the whole file, or None."""
    for where, known, wanted in (("global", GLOBAL_KEYS, "stores"), ("global.stores", STORE_KEYS, "memory")):
        if section is None:
            break
        others = dict(_known(section, known, where, source))
        section = others.pop(wanted, None)
        unread += [Unread(f"{where}.{key}", ROUTERS) for key in others]
    return section


def _memory(section: Mapping[Any, Any], where: str, unread: list[Unread], source: str) -> dict[str, Any]:
    """The section with our keys alone."""
    ours = {}
    known = {*typing.get_type_hints(MemorySettings), *INSTEAD, "disabled_routes"} - {"milvus.num_partitions"}
    for key, value in _known(section, sorted(known), where, source):
        if key == "milvus" and isinstance(value, Mapping):
            ours[key] = {name: one for name, one in value.items() if name != "num_partitions"}
            if "num_partitions" in value:
                unread.append(Unread(f"{where}.milvus.num_partitions", INSTEAD["milvus.num_partitions"]))
        elif key == "disabled_routes":
            ours.setdefault("off_routes", value)
        elif key not in INSTEAD:
            ours[key] = value
        else:
            if key in SECTIONS and value is not None:
                list(_known(value, SECTIONS[key].split(), f"{where}.{key}", source))
            if value and (key, value) != ("backend", "milvus"):
                unread.append(Unread(f"{where}.{key}", INSTEAD[key]))
    return ours


def _known(section: object, known: Sequence[str], where: str, source: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(section, Mapping):
        raise BadSetting(f"{where} ({source}): expected keys with values, got {section!r:.80}")
    for key in section:
        if key not in known:
            raise BadSetting(unknown(f"{where}.{key}", (f"{where}.{name}" for name in known), source))
    return section.items()
