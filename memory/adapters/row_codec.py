"""Converts memories to rows of a collection and back, without loss.

Times and scores are doubles (vLLM Semantic Router stores integer Unix seconds in the same fields). `claim`, `evidence`
and `metadata` are JSON text rather than JSON fields: they are never filtered on, and text is stored unchanged. Not
every Milvus supports null, so that an absent time is `NO_TIME`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec
import numpy as np
import structlog

from memory.adapters.well_formed import well_formed
from memory.errors import BadInput, MemoryRefused
from memory.model import (
    CONTENT_CHARACTERS_MAX,
    ID_BYTES_MAX,
    Candidate,
    Change,
    Evidence,
    Memory,
    MemoryStatus,
    Record,
    Trust,
    Vector,
    is_valid_id,
    statement_key,
)
from memory.model.raw_words import embedded_text
from memory.typed import from_json

CONTENT_BYTES_MAX = 4 * CONTENT_CHARACTERS_MAX  # UTF-8 takes up to four bytes per character, and Milvus counts bytes
JSON_BYTES_MAX = 60_000  # of evidence, and of metadata: Milvus limits a text to 65,535
CLAIM_BYTES_MAX = 16_384  # attribute, name, values: words of a content of 8,000 characters at most
NAME_BYTES_MAX = 256
SHORT_BYTES_MAX = 64
NO_TIME = -1.0e15  # "not given": 32 million years ago

TEXT_BYTES_MAX: Mapping[str, int] = {
    **dict.fromkeys(("id", "user_id", "project_id", "session_id", "agent_id", "superseded_by"), ID_BYTES_MAX),
    **dict.fromkeys(("category", "source", "subject", "made_by"), NAME_BYTES_MAX),
    **dict.fromkeys(("memory_type", "status", "trust", "statement_key"), SHORT_BYTES_MAX),
    "content": CONTENT_BYTES_MAX,
    "claim": CLAIM_BYTES_MAX,
    **dict.fromkeys(("evidence", "metadata"), JSON_BYTES_MAX),
}
NUMBER_FIELDS = ("created_at", "updated_at", "said_at", "importance", "confidence")
OPEN_TIME_FIELDS = ("valid_from", "invalid_at", "superseded_at", "expires_at", "used_at")  # may be absent
WHOLE_NUMBER_FIELDS = ("access_count",)
VECTOR_FIELD = "embedding"
CLAIM_FIELDS = ("subject", "claim")
MEMORY_FIELDS = (*TEXT_BYTES_MAX, *NUMBER_FIELDS, *OPEN_TIME_FIELDS, *WHOLE_NUMBER_FIELDS)
RECORD_FIELDS = (*MEMORY_FIELDS, VECTOR_FIELD)

Row: TypeAlias = dict[str, Any]
Read = TypeVar("Read")

log = structlog.get_logger(__name__)


def written(user_id: str, changes: Sequence[Change], vectors: Vector, *, dimension: int) -> dict[str, Row]:
    """The rows of these changes by id; of two changes to one memory the later counts. Raises `MemoryRefused`."""
    assert vectors.shape == (len(changes), dimension), f"vectors {vectors.shape} for {len(changes)} × {dimension}"
    assert all(change.memory.user_id == user_id for change in changes), "a change of another user's memory"
    return {c.memory.id: row_of(Record(c.memory, v)) for c, v in zip(changes, vectors, strict=True)}


def refuse_foreign(user_id: str, owners: Mapping[str, str]) -> None:
    """Raise `MemoryRefused` if one of these ids is another user's: ids are unique in the whole collection."""
    for memory_id, owner in owners.items():
        if owner != user_id:
            raise MemoryRefused("a memory id is already taken: draw a new one", memory_id=memory_id, code="id_taken")


def row_of(record: Record) -> Row:
    """Raises `MemoryRefused` if the memory does not fit into a row."""
    try:
        return _checked_row(record)
    except BadInput as error:
        raise MemoryRefused(str(error), memory_id=record.memory.id, code=error.code) from None


def _checked_row(record: Record) -> Row:
    memory = record.memory
    if not is_valid_id(memory.id):
        raise BadInput(f"a memory id must have 1 to {ID_BYTES_MAX} bytes and no control characters")
    row: Row = {name: getattr(memory, name) for name in (*NUMBER_FIELDS, *WHOLE_NUMBER_FIELDS)}
    for name in OPEN_TIME_FIELDS:
        value = getattr(memory, name)
        row[name] = NO_TIME if value is None else value
    for name in (*NUMBER_FIELDS, *OPEN_TIME_FIELDS):
        row[name] = float(row[name])
        if not math.isfinite(row[name]):
            raise BadInput(f"{name} must be a finite number")
    for name in TEXT_BYTES_MAX:
        if name not in ("statement_key", "claim", "evidence", "metadata"):
            row[name] = well_formed(str(getattr(memory, name)))
    row["statement_key"] = statement_key(memory.content)
    claim = [memory.attribute, memory.name, list(memory.values), memory.is_affirmed]
    row["claim"] = _json("claim", claim if memory.utc_offset is None else [*claim, memory.utc_offset])
    row["evidence"] = _json("evidence", [e.fields for e in memory.evidence])
    row["metadata"] = _json("metadata", dict(memory.metadata))
    for name, bytes_max in TEXT_BYTES_MAX.items():
        if len(row[name].encode()) > bytes_max:
            raise BadInput(f"{name} is larger than {bytes_max} bytes")
    row[VECTOR_FIELD] = np.asarray(record.vector, dtype=np.float32)
    return row


def memory_of(row: Mapping[str, Any]) -> Memory:
    """The memory of a row with all of `MEMORY_FIELDS`."""
    values = {name: row[name] for name in (*TEXT_BYTES_MAX, *WHOLE_NUMBER_FIELDS, *NUMBER_FIELDS)}
    del values["statement_key"], values["claim"]
    for name in OPEN_TIME_FIELDS:
        values[name] = None if row[name] == NO_TIME else row[name]
    values["status"] = MemoryStatus(row["status"])
    values["trust"] = Trust(row["trust"])
    values["attribute"], values["name"], claimed, values["is_affirmed"], *offset = _decoded(row["claim"])
    values["utc_offset"] = offset[0] if offset else None
    values["values"] = tuple(claimed)
    values["evidence"] = tuple(Evidence(*entry) for entry in _decoded(row["evidence"]))
    values["metadata"] = {} if row["metadata"] == "{}" else json.loads(row["metadata"])
    return Memory(**values)


def _decoded(text: str) -> list[Any]:
    """A list in JSON, without large numbers. Surrogates, which few rows hold, are read by the slower library alone."""
    try:
        return from_json(text, list)
    except msgspec.DecodeError:
        found: list[Any] = json.loads(text)
        return found


def claim_of(row: Mapping[str, Any]) -> tuple[str, str, str, list[str]]:
    """Subject, name, attribute and values of a row with `CLAIM_FIELDS`."""
    attribute, name, values, *_ = json.loads(row["claim"])
    return row["subject"], name, attribute, values


def record_of(row: Mapping[str, Any]) -> Record:
    """The record of a row with all of `RECORD_FIELDS`."""
    return Record(memory_of(row), np.array(row[VECTOR_FIELD], dtype=np.float32))


def readable(convert: Callable[[Row], Read], row: Row) -> Read | None:
    """The converted row; None for an invalid one, which must not affect the user's others."""
    try:
        return convert(row)
    except (KeyError, TypeError, ValueError) as error:
        log.error("a stored memory cannot be read", memory_id=str(row.get("id", "")), error=type(error).__name__)
        return None


def embedded_text_of(row: Row) -> str:
    """What a row with all of `MEMORY_FIELDS` is embedded by; the content of an invalid one."""
    memory = readable(memory_of, row)
    return str(row["content"]) if memory is None else embedded_text(memory)


def candidate(memory: Memory, cosine: float) -> Candidate:
    return Candidate(memory, score=cosine, parts={"dense": cosine})


def _json(name: str, value: object) -> str:
    """As JSON text; lone surrogates are escaped."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return text if text == well_formed(text) else json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise BadInput(f"{name} must be JSON: objects, lists, text, finite numbers, true, false and null") from None
