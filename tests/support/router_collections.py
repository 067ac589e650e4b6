"""Milvus collections as vLLM Semantic Router makes and fills them."""

from __future__ import annotations

import json
from typing import Any

from pymilvus import DataType, MilvusClient

DIMENSION = 8


def create_collection(client: MilvusClient, collection: str) -> None:
    """With the router's schema and index: milvus_store_schema.go and milvus_store_collection.go in pkg/memory."""
    schema = client.create_schema(auto_id=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
    for name, length in (("user_id", 256), ("project_id", 256), ("memory_type", 32), ("source", 256)):
        schema.add_field(name, DataType.VARCHAR, max_length=length, is_partition_key=name == "user_id")
    for name in ("content", "metadata"):
        schema.add_field(name, DataType.VARCHAR, max_length=65_535)
    schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=DIMENSION)
    for name in ("created_at", "updated_at", "access_count"):
        schema.add_field(name, DataType.INT64)
    schema.add_field("importance", DataType.FLOAT)
    index = client.prepare_index_params()
    index.add_index("embedding", index_type="HNSW", metric_type="COSINE", params={"M": 16, "efConstruction": 256})
    client.create_collection(collection, schema=schema, index_params=index, num_partitions=16)


def stored_by_the_router(number: int, **fields: Any) -> dict[str, Any]:
    """As pkg/memory/milvus_store_columns.go writes a row."""
    metadata = {
        "user_id": "ann",
        "project_id": "",
        "source": "",
        "importance": 0,
        "access_count": 0,
        "last_accessed": 5,
    }
    return {
        "id": f"mem_{number:05}",
        "user_id": "ann",
        "project_id": "default",
        "memory_type": "semantic",
        "content": f"fact {number}",
        "source": "extraction",
        "metadata": json.dumps(metadata),
        "embedding": [0.1] * DIMENSION,
        "created_at": 1_700_000_000 + number,
        "updated_at": 1_700_000_000 + number,
        "access_count": 0,
        "importance": 0.0,
    } | fields
