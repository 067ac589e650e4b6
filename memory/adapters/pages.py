"""Pagination shared by all stores: the order (newest first), the cursor, and the filter.

The cursor names the last row shown, so that pages stay correct when rows are added or deleted. It is untrusted input: a
forged one can only move its caller within their own memories.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from typing import TypeVar

from memory.errors import BadInput
from memory.model import Memory, MemoryStatus
from memory.ports import MemoryFilter

PAGE_MEMORIES_MAX = 1_000  # rows of one page; REST is stricter
CURSOR_CHARACTERS_MAX = 2_000  # an id of 256 bytes takes 400

Item = TypeVar("Item")
Position = tuple[float, str]
"""`(created_at, id)`: a larger one is newer. Ids are unique, so the order has no ties."""


def position(memory: Memory) -> Position:
    return (memory.created_at, memory.id)


def cut(positions: Iterable[Position], *, limit: int, cursor: str) -> tuple[list[Position], str]:
    """The positions of one page, newest first, and the cursor of the next one ("" on the last). Raises `BadInput`."""
    limit = max(1, min(limit, PAGE_MEMORIES_MAX))
    after = read_cursor(cursor)
    ordered = sorted((p for p in positions if after is None or p < after), reverse=True)
    shown = ordered[:limit]
    return shown, write_cursor(shown[-1]) if len(ordered) > limit else ""


async def paged(read: Callable[[int], Awaitable[Sequence[tuple[int, Item]]]], *, size: int) -> AsyncIterator[Item]:
    """All rows of a table. `read`: a page of those after a position, each with its own; `size`: of a page in rows."""
    after, is_last = 0, False
    while not is_last:
        page = await read(after)
        for position, row in page:
            after = position
            yield row
        is_last = len(page) < size


def write_cursor(last: Position) -> str:
    return base64.urlsafe_b64encode(json.dumps(last).encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> Position | None:
    """The position after which the page starts; None for "". Raises `BadInput` for an invalid cursor."""
    if not cursor:
        return None
    refused = BadInput("cursor is invalid: start again without it")
    if len(cursor) > CURSOR_CHARACTERS_MAX:
        raise refused
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        read = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise refused from None
    match read:
        case [float(at), str(memory_id)] if math.isfinite(at):
            return (at, memory_id)
        case _:
            raise refused


def admits(where: MemoryFilter, memory: Memory) -> bool:
    """Whether the filter admits the memory: the Milvus expression in Python."""
    if memory.user_id != where.user_id:
        return False
    if where.exact_project and memory.project_id != where.project_id:
        return False
    if where.project_id and memory.project_id not in ("", where.project_id):
        return False
    if where.agent_id and memory.agent_id not in ("", where.agent_id):
        return False
    if where.memory_types and memory.memory_type not in where.memory_types:
        return False
    if not where.with_archived and memory.status is MemoryStatus.ARCHIVED:
        return False
    if where.status is None and not where.with_raw and memory.status is MemoryStatus.RAW:
        return False
    if where.source and memory.source != where.source:
        return False
    if where.other_source and memory.source == where.other_source:
        return False
    was_said_then = not where.said_within or any(start <= memory.said_at < end for start, end in where.said_within)
    return was_said_then and (where.status is None or memory.status == where.status)


def holds(words: Collection[str], content: str) -> bool:
    """Whether it contains one of them; True if there are none."""
    return not words or any(spelling in content for word in words for spelling in spellings(word))


def spellings(word: str) -> tuple[str, ...]:
    """As given, and capitalised. Stores cannot fold letters."""
    assert word.isalnum(), "a word with special characters"
    capital = word[:1].upper() + word[1:]
    return (word,) if capital == word else (word, capital)
