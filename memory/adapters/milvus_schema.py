"""The collection: its fields, its index, and whether one that is already there is ours.

Fields are named as in vLLM Semantic Router's collection, plus ours (see `rows`). On a server `user_id` is the partition
key, so that a search reads one user's partition; on Milvus Lite partitions make a search slower, and a scalar index
loses hits, so there it is a plain field.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from memory.adapters import rows
from memory.errors import BadSetting

Library: TypeAlias = Any
"""The module `pymilvus`, imported late; it has no types, nor have its schema and its index parameters."""


def fields(pymilvus: Library, *, dimension: int, is_lite: bool) -> Library:
    schema = pymilvus.AsyncMilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    kinds = pymilvus.DataType
    for name, bytes_max in rows.TEXT_BYTES_MAX.items():
        is_key = name == "user_id" and not is_lite
        schema.add_field(name, kinds.VARCHAR, max_length=bytes_max, is_primary=name == "id", is_partition_key=is_key)
    for name in (*rows.NUMBER_FIELDS, *rows.OPEN_TIME_FIELDS):
        schema.add_field(name, kinds.DOUBLE)
    for name in rows.WHOLE_NUMBER_FIELDS:
        schema.add_field(name, kinds.INT64)
    schema.add_field(rows.VECTOR_FIELD, kinds.FLOAT_VECTOR, dim=dimension)
    return schema


def index(pymilvus: Library, *, is_lite: bool) -> Library:
    """Exact on Milvus Lite: its approximate index lost one filtered hit in twenty, and took twice as long."""
    params = pymilvus.AsyncMilvusClient.prepare_index_params()
    kind = "FLAT" if is_lite else "AUTOINDEX"
    params.add_index(rows.VECTOR_FIELD, index_name=rows.VECTOR_FIELD, index_type=kind, metric_type="COSINE")
    return params


def check(description: dict[str, Any], *, collection: str, dimension: int) -> None:
    """Raise `BadSetting` where an existing collection cannot hold our rows."""
    present = {field["name"]: field for field in description["fields"]}
    missing = sorted(set(rows.RECORD_FIELDS) - set(present))
    if missing:
        raise BadSetting(
            f"collection {collection!r} was not made by memproxy: it lacks {', '.join(missing)}; "
            "name another collection (memory.milvus.collection)"
        )
    found = int(present[rows.VECTOR_FIELD]["params"]["dim"])
    if found != dimension:
        raise BadSetting(
            f"collection {collection!r} holds vectors of {found} numbers, the embedding model makes {dimension}; "
            "name another collection (memory.milvus.collection), or go back to the model that it was filled with"
        )
