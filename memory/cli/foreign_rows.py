"""Memories that mem0 and vLLM Semantic Router stored, as rows of ours. Pure: it gets what was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from memory.api.times import time_of
from memory.cli.memory_rows import MemoryRow, RowProblems
from memory.errors import BadInput
from memory.service.requests import NewMemory
from memory.typed import converted, from_json

NO_PROJECT = "default"  # the router's older releases wrote it where there was none; its metadata tell


class Mem0Memory(msgspec.Struct, frozen=True):
    """An entry of `Memory.get_all()`; other fields are left out."""

    id: str
    memory: str
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    role: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    metadata: dict[str, Any] | None = None


def mem0_rows(content: bytes, problems: RowProblems, *, user_id: str = "") -> Iterator[MemoryRow]:
    """The rows of a JSON file that `get_all()` gave. `user_id`: only of this user, and of entries that name none."""
    for number, entry in enumerate(_entries(content), start=1):
        where = f"entry {number}"
        try:
            given = converted(entry, Mem0Memory)
            owner = given.user_id or user_id
            if not owner:
                raise BadInput("it names no user: give --user")
            if user_id and owner != user_id:
                continue
            at = given.updated_at or given.created_at  # its words are those of the last change
            memory = NewMemory(
                content=given.memory,
                session_id=given.run_id or "",
                agent_id=given.agent_id or "",
                created_at=time_of(at, "updated_at or created_at"),
                metadata=(given.metadata or {}) | ({"role": given.role} if given.role else {}),
            )
            yield MemoryRow(owner, memory, f"mem0:{given.id}", where)
        except (BadInput, msgspec.ValidationError) as error:
            problems.found.append(f"{where}: {error}")


def _entries(content: bytes) -> list[Any]:
    """Of `{"results": […]}`, or of the list alone as older releases gave it."""
    try:
        decoded = from_json(content, Any)
    except msgspec.DecodeError as error:
        raise BadInput(f"this is not JSON: {error}") from None
    entries = decoded.get("results") if isinstance(decoded, dict) else decoded
    if not isinstance(entries, list):
        raise BadInput('expected the JSON of mem0\'s `Memory.get_all()`: {"results": [{"id": …, "memory": …}]}')
    return entries


def router_row(stored: Mapping[str, Any]) -> MemoryRow:
    """A row of the router's collection. Raises `BadInput`."""
    metadata = _metadata_of(str(stored["metadata"]))
    project = str(metadata.get("project_id", stored["project_id"]) or "")
    if "project_id" not in metadata and project == NO_PROJECT:
        project = ""
    kept = {"source": str(stored["source"]), "access_count": int(stored["access_count"])}
    importance = float(stored["importance"])  # 0 where nobody judged it; its 32 bits make 0.3 to 0.30000001
    memory = NewMemory(
        content=str(stored["content"]),
        memory_type=str(stored["memory_type"]) or "semantic",
        project_id=project,
        created_at=float(stored["created_at"] or stored["updated_at"]) or None,  # each retrieval sets updated_at
        importance=min(round(importance, 6), 1.0) if importance > 0 else 0.5,
        metadata={name: value for name, value in kept.items() if value},
    )
    return MemoryRow(str(stored["user_id"]), memory, f"semantic-router:{stored['id']}", f"memory {stored['id']}")


def router_memory_rows(rows: Iterable[Mapping[str, Any]], problems: RowProblems) -> Iterator[MemoryRow]:
    """The rows that can be memories."""
    for stored in rows:
        try:
            yield router_row(stored)
        except (BadInput, ValueError) as error:
            problems.found.append(f"memory {stored['id']}: {error}")


def _metadata_of(text: str) -> dict[str, Any]:
    try:
        return from_json(text or "{}", dict[str, Any])
    except msgspec.DecodeError:
        return {}
