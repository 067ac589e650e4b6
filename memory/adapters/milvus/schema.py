"""The collection's schema: fields, index, and checks of an existing collection.

Field names are those of vLLM Semantic Router's collection plus ours (see `row_codec`). A collection records the version
of this schema. 1: until there were versions; on servers, with a partition key. 2: on servers, partitions of our own
and a scalar index on `user_id`; on Milvus Lite, where both would do harm, as before.

What the Milvus at hand can do and needs is decided once, from the version that it reports: the rest of the adapter asks
whether it is Milvus Lite, with all that follows from that, or finds words, and never for a version. A cluster is like a
standalone server.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from memory.adapters import row_codec
from memory.errors import BadSetting
from memory.model import VectorOrigin
from memory.typed import from_json

LITE_NAME = "milvus_lite"  # a server that was installed from PyPI calls itself `v2.3.5-lite`, and is none
FIRST_WITH_WORDS = (2, 4)  # with inverted indexes on text, and patterns that match within it


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`is_lite`: on Milvus Lite a search of one partition is slower, and a scalar index on text loses hits. Unflushed
    rows make its searches slow; a server flushes by itself, and a flush of ours for each write would leave many small
    segments: there, a writer waits until its rows are visible instead. On Milvus Lite a search without a limit returns
    all rows, in a third of a query's time; an index file may be incomplete after a kill, and is to be made again; and
    files hold deleted rows as long as their collection exists, where a server compacts by itself.

    `finds_words`: `like` finds text anywhere in a field; before 2.4 only where a field begins with it.
    """

    is_lite: bool
    finds_words: bool = True


def capabilities_of(version: str) -> Capabilities:
    """`version`: as reported, for example `milvus_lite-3.2.2`, `v2.3.5-lite`, `v2.5.4`, `2.6.0-rc1`."""
    if version.lower().startswith(LITE_NAME):
        return Capabilities(is_lite=True)
    major, minor = [*(int(part) for part in version.lstrip("vV").split(".")[:2] if part.isdigit()), 0, 0][:2]
    return Capabilities(is_lite=False, finds_words=(major, minor) >= FIRST_WITH_WORDS)


EXACT_ROWS_MAX = 1_000_000  # some 60,000 rows in each partition, whose owners are compared in a few ms
EXACT, GRAPH = "FLAT", "HNSW"  # kinds of a vector index, as Milvus names them
SEARCH_WIDTH_MIN = 64  # candidates that a search in a graph looks at, at least
SCHEMA_VERSION = 2
# Part of the schema's version: with another number, rows would be looked for where they are not. They are named and
# chosen here rather than by Milvus' own partition key. With a key, Milvus 2.3 writes an upserted row into another
# partition than the one that it searches for the same user, so that the row is never found.
ALL_PARTITIONS = tuple(f"users_{number}" for number in range(16))
ORIGIN_PROPERTY = "memproxy.vector_origin"  # JSON of the vectors' origin, and of the schema's version

Library: TypeAlias = Any
"""The module `pymilvus`, imported late; it is untyped, as are its schema and index parameters."""


class _Version(msgspec.Struct):
    schema_version: int = 1


def fields(pymilvus: Library, *, dimension: int, origin: VectorOrigin | None) -> Library:
    schema = pymilvus.AsyncMilvusClient.create_schema(
        auto_id=False, enable_dynamic_field=False, description=record_of(origin)[ORIGIN_PROPERTY]
    )
    kinds = pymilvus.DataType
    for name, bytes_max in row_codec.TEXT_BYTES_MAX.items():
        schema.add_field(name, kinds.VARCHAR, max_length=bytes_max, is_primary=name == "id")
    for name in (*row_codec.NUMBER_FIELDS, *row_codec.OPEN_TIME_FIELDS):
        schema.add_field(name, kinds.DOUBLE)
    for name in row_codec.WHOLE_NUMBER_FIELDS:
        schema.add_field(name, kinds.INT64)
    schema.add_field(row_codec.VECTOR_FIELD, kinds.FLOAT_VECTOR, dim=dimension)
    return schema


def partition_of(user_id: str) -> str:
    """The one that holds a user's rows: a search of one user reads no other."""
    return ALL_PARTITIONS[zlib.crc32(user_id.encode()) % len(ALL_PARTITIONS)]


def index(pymilvus: Library, *, can: Capabilities, rows: int = 0) -> Library:
    """Exact until `rows` are so many that reading one partition takes too long, and always on Milvus Lite.

    A search is limited to one user, hence to some hundred rows of one partition: an exact index compares these alone,
    while a graph of all users' rows is searched in vain for them. Milvus Lite's own choice lost one hit in twenty.
    """
    params = pymilvus.AsyncMilvusClient.prepare_index_params()
    if not can.is_lite:
        params.add_index("user_id", index_name="user_id", index_type="INVERTED" if can.finds_words else "Trie")
    kind = index_kind(can=can, rows=rows)
    graph = {"M": 16, "efConstruction": 200} if kind == GRAPH else {}
    params.add_index(
        row_codec.VECTOR_FIELD,
        index_name=row_codec.VECTOR_FIELD,
        index_type=kind,
        metric_type="COSINE",
        **({"params": graph} if graph else {}),
    )
    return params


def index_kind(*, can: Capabilities, rows: int) -> str:
    return GRAPH if not can.is_lite and rows > EXACT_ROWS_MAX else EXACT


def index_fits(kind: str, *, can: Capabilities, rows: int) -> bool:
    """Whether an index of this kind serves so many rows: all but an exact one for too many.

    A graph stays if rows are deleted, and so does a kind that the server or its operator chose.
    """
    return kind != EXACT or index_kind(can=can, rows=rows) == EXACT


def search_params(limit: int) -> dict[str, Any]:
    """Of a search for `limit` rows. An exact index has no use for `ef`, and ignores it."""
    return {"metric_type": "COSINE", "params": {"ef": max(SEARCH_WIDTH_MIN, 2 * limit)}}


def record_of(origin: VectorOrigin | None) -> dict[str, str]:
    """The properties of a new collection. The record is also its description: Milvus Lite keeps only properties, and a
    server may drop properties that it does not know.
    """
    known = {} if origin is None else msgspec.to_builtins(origin)
    return {ORIGIN_PROPERTY: msgspec.json.encode({**known, "schema_version": SCHEMA_VERSION}).decode()}


def version_of(description: dict[str, Any]) -> int:
    try:
        return from_json(_recorded(description) or "{}", _Version).schema_version
    except msgspec.DecodeError:
        return 1


def oldest_version(can: Capabilities) -> int:
    """Of a collection that can be used as it is. Version 2 changed nothing on Milvus Lite."""
    return 1 if can.is_lite else 2


def check_version(description: dict[str, Any], *, collection: str, can: Capabilities) -> None:
    """Raise `BadSetting` if the collection is of another version than this release reads and writes."""
    version = version_of(description)
    if version > SCHEMA_VERSION:
        raise BadSetting(
            f"collection {collection!r} has schema version {version}, made by a later release; this one knows "
            f"{SCHEMA_VERSION}: update memproxy, or name another collection (memory.milvus.collection)"
        )
    if version < oldest_version(can):
        raise BadSetting(
            f"collection {collection!r} has schema version {version}, this release needs {SCHEMA_VERSION}: stop "
            "memproxy and run `memproxy migrate`, which copies all memories and loses none"
        )


def origin_of(description: dict[str, Any]) -> VectorOrigin:
    """The origin of its vectors; one that agrees with nothing we know if it is not stated, or by a later release."""
    try:
        return from_json(_recorded(description), VectorOrigin)
    except msgspec.DecodeError:
        return VectorOrigin("", dimension_of(description))


def _recorded(description: dict[str, Any]) -> str:
    said = str(description.get("description") or "")
    kept = dict(description.get("properties") or {}).get(ORIGIN_PROPERTY)
    return str(kept or (said if said.startswith("{") else ""))


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
