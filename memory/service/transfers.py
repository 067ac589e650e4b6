"""Exports all memories of a user as JSON lines, and imports them into this or another system.

The first line says what the file is; each further line holds one memory, whatever its status, with its id, times, claim
and evidence. Vectors are made again, by the model of the system that imports. Raw words of turns stay where they are:
they belong to the conversation record, which has an export of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import msgspec

from memory.errors import BadInput
from memory.model import Change, ChangeKind, Memory, MemoryStatus, is_valid_id
from memory.ports import MemoryBank, MemoryFilter
from memory.service.locked_writes import write_rows
from memory.service.requests import checked_metadata

PAGE = 200  # memories read, or embedded and written, at a time
LINE_BYTES_MAX = 1 << 20  # a memory of the greatest length, with evidence and metadata, has a fifth of it

_Line = TypeVar("_Line", bound=msgspec.Struct)


class ExportHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="memproxy-export"):
    """The first line. `user_id`: whose memories these were; whoever imports them owns the copies."""

    user_id: str
    version: Literal[1] = 1


class ExportedMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="memory"):
    memory: Memory


@dataclass(frozen=True, slots=True)
class Imported:
    """Counts: stored; `present` were there already and stayed as they are; `forgotten` were deleted here before."""

    stored: int = 0
    present: int = 0
    forgotten: int = 0

    def __add__(self, other: Imported) -> Imported:
        return Imported(self.stored + other.stored, self.present + other.present, self.forgotten + other.forgotten)


class MemoryTransfers:
    """Methods raise `BadInput`, `Unavailable` or `Conflict`; an import may be repeated safely."""

    def __init__(self, memories: MemoryBank) -> None:
        self._store = memories.store
        self._ledger = memories.ledger
        self._embedder = memories.embedder

    async def export(self, user_id: str) -> AsyncIterator[bytes]:
        """The lines, each with its end, newest memory first."""
        yield msgspec.json.encode(ExportHeader(user_id)) + b"\n"
        cursor, is_first = "", True
        while cursor or is_first:
            page = await self._store.page(MemoryFilter(user_id, status=None), limit=PAGE, cursor=cursor)
            cursor, is_first = page.next_cursor, False
            for memory in page.memories:
                yield msgspec.json.encode(ExportedMemory(memory)) + b"\n"

    async def load(self, user_id: str, lines: AsyncIterator[bytes]) -> Imported:
        """Stores what `export` wrote. Raises `BadInput` with the number of a line that cannot be read; what stood in
        batches before it is stored by then.
        """
        number, waiting, counts = 0, list[Memory](), Imported()
        async for line in lines:
            number += 1
            if number == 1:
                _read(line, ExportHeader, number)
            elif line.strip():
                waiting.append(_checked(_read(line, ExportedMemory, number).memory, user_id, number))
            if len(waiting) == PAGE:
                counts += await self._store_all(user_id, waiting)
                waiting = []
        if not number:
            raise BadInput("the file is empty: it must begin with the line that an export begins with")
        return counts + await self._store_all(user_id, waiting)

    async def _store_all(self, user_id: str, given: Sequence[Memory]) -> Imported:
        memories = list({memory.id: memory for memory in given}.values())
        if not memories:
            return Imported()
        vectors = await self._embedder.embed([memory.content for memory in memories], is_urgent=False)
        async with self._ledger.write(user_id) as held:
            ids = [memory.id for memory in memories]
            present = {record.memory.id for record in await self._store.get(user_id, ids)}
            gone = await held.forgotten(ids) - present
            kept = [index for index, memory_id in enumerate(ids) if memory_id not in present | gone]
            changes = [Change(ChangeKind.CREATE, memories[index]) for index in kept]
            await write_rows(self._store, held, user_id, changes, vectors[kept])
        return Imported(len(kept), len(present), len(gone))


def _read(line: bytes, kind: type[_Line], number: int) -> _Line:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"line {number} is not one of an export: {error}") from None
    except BadInput as error:
        raise BadInput(f"line {number}: {error}", code=error.code) from None


def _checked(memory: Memory, user_id: str, number: int) -> Memory:
    """The memory as the caller's own."""
    scope = (memory.project_id, memory.session_id, memory.agent_id, memory.superseded_by)
    if not is_valid_id(memory.id) or not all(is_valid_id(one) for one in scope if one):
        raise BadInput(f"line {number} has an id that cannot be: 1-256 bytes of UTF-8 without control characters")
    if memory.status is MemoryStatus.RAW:
        raise BadInput(f"line {number} holds raw words of a turn, which an export never does")
    checked_metadata(memory.metadata)
    return replace(memory, user_id=user_id)


__all__ = ["LINE_BYTES_MAX", "ExportHeader", "ExportedMemory", "Imported", "MemoryTransfers"]
