"""Collections as release 0.1 made them on a Milvus server: partitions by a key, and no version of a schema."""

from __future__ import annotations

import json
from collections.abc import Sequence

from milvus_standalone import MilvusServer
from pymilvus import DataType

from memory.adapters import row_codec
from memory.model import VectorOrigin


def older_collection(
    server: MilvusServer, collection: str, origin: VectorOrigin, rows: Sequence[row_codec.Row] = ()
) -> None:
    client = server.client()
    made = client.create_schema(
        auto_id=False,
        enable_dynamic_field=False,
        description=json.dumps({"model": origin.model, "dimension": origin.dimension}),
    )
    for name, bytes_max in row_codec.TEXT_BYTES_MAX.items():
        is_key = name == "user_id"
        made.add_field(name, DataType.VARCHAR, max_length=bytes_max, is_primary=name == "id", is_partition_key=is_key)
    for name in (*row_codec.NUMBER_FIELDS, *row_codec.OPEN_TIME_FIELDS):
        made.add_field(name, DataType.DOUBLE)
    for name in row_codec.WHOLE_NUMBER_FIELDS:
        made.add_field(name, DataType.INT64)
    made.add_field(row_codec.VECTOR_FIELD, DataType.FLOAT_VECTOR, dim=origin.dimension)
    index = client.prepare_index_params()
    index.add_index(row_codec.VECTOR_FIELD, index_type="AUTOINDEX", metric_type="COSINE")
    client.create_collection(collection, schema=made, index_params=index)
    if rows:
        client.insert(collection, list(rows))
    client.close()
