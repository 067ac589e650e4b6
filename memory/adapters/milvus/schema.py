"""The collection's schema: fields, index, and checks of an existing collection.

Field names are those of vLLM Semantic Router's collection plus ours (see `row_codec`). On a server `user_id` is the
partition key, so that a search reads one user's partition; on Milvus Lite partitions make searches slower and a scalar
index loses hits, so that it is a plain field there.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from memory.adapters import row_codec
from memory.adapters.models.embedding_model import PACKAGED_ORIGIN
from memory.errors import BadSetting
from memory.model import VectorOrigin

ORIGIN_PROPERTY = "memproxy.vector_origin"  # JSON of the vectors' origin

Library: TypeAlias = Any
"""The module `pymilvus`, imported late; it is untyped, as are its schema and index parameters."""


def fields(pymilvus: Library, *, dimension: int, origin: VectorOrigin | None, is_lite: bool) -> Library:
    schema = pymilvus.AsyncMilvusClient.create_schema(
        auto_id=False, enable_dynamic_field=False, description=record_of(origin).get(ORIGIN_PROPERTY, "")
    )
    kinds = pymilvus.DataType
    for name, bytes_max in row_codec.TEXT_BYTES_MAX.items():
        is_key = name == "user_id" and not is_lite
        schema.add_field(name, kinds.VARCHAR, max_length=bytes_max, is_primary=name == "id", is_partition_key=is_key)
    for name in (*row_codec.NUMBER_FIELDS, *row_codec.OPEN_TIME_FIELDS):
        schema.add_field(name, kinds.DOUBLE)
    for name in row_codec.WHOLE_NUMBER_FIELDS:
        schema.add_field(name, kinds.INT64)
    schema.add_field(row_codec.VECTOR_FIELD, kinds.FLOAT_VECTOR, dim=dimension)
    return schema


def index(pymilvus: Library, *, is_lite: bool) -> Library:
    """Exact on Milvus Lite: its approximate index lost one filtered hit in twenty, and took twice as long."""
    params = pymilvus.AsyncMilvusClient.prepare_index_params()
    kind = "FLAT" if is_lite else "AUTOINDEX"
    params.add_index(row_codec.VECTOR_FIELD, index_name=row_codec.VECTOR_FIELD, index_type=kind, metric_type="COSINE")
    return params


def record_of(origin: VectorOrigin | None) -> dict[str, str]:
    """The properties of a new collection. The origin is also part of the description: Milvus Lite keeps only
    properties, and a server may drop properties that it does not know.
    """
    return {} if origin is None else {ORIGIN_PROPERTY: msgspec.json.encode(origin).decode()}


def origin_of(description: dict[str, Any]) -> VectorOrigin:
    """The origin of its vectors. Collections without one have vectors of the packaged model."""
    said = str(description.get("description") or "")
    recorded = dict(description.get("properties") or {}).get(ORIGIN_PROPERTY) or (said if said.startswith("{") else "")
    if recorded:
        try:
            return msgspec.json.decode(recorded, type=VectorOrigin)
        except msgspec.DecodeError:
            return VectorOrigin("", dimension_of(description))  # of a later release: agrees with nothing we know
    dimension = dimension_of(description)
    return PACKAGED_ORIGIN if dimension == PACKAGED_ORIGIN.dimension else VectorOrigin("", dimension)


def dimension_of(description: dict[str, Any]) -> int:
    [vector] = [field for field in description["fields"] if field["name"] == row_codec.VECTOR_FIELD]
    return int(vector["params"]["dim"])


def check_fields(description: dict[str, Any], *, collection: str) -> None:
    """Raise `BadSetting` if an existing collection cannot hold our rows."""
    missing = sorted(set(row_codec.RECORD_FIELDS) - {field["name"] for field in description["fields"]})
    if missing:
        raise BadSetting(
            f"collection {collection!r} was not made by memproxy: it lacks {', '.join(missing)}; "
            "name another collection (memory.milvus.collection)"
        )


def holds_vectors_of(description: dict[str, Any], *, dimension: int, origin: VectorOrigin | None) -> bool:
    """Whether vectors of this origin may be added. None: any origin."""
    if origin is None:
        return dimension_of(description) == dimension
    return origin_of(description).agrees_with(origin)


def refusal(description: dict[str, Any], *, collection: str, dimension: int, origin: VectorOrigin | None) -> BadSetting:
    """The error if they may not."""
    if origin is None:
        held, wanted = f"{dimension_of(description)} numbers", f"the embedding model makes {dimension}"
    else:
        held, wanted = str(origin_of(description)), f"memory.embedding now makes those of {origin}"
    return BadSetting(
        f"collection {collection!r} holds vectors of {held}, {wanted}: stop memproxy and run `memproxy reembed`, which "
        "embeds all memories again, or go back to the model that it was filled with, or name another collection "
        "(memory.milvus.collection)"
    )
