"""The earlier wordings of a memory that was corrected in place. Pure.

They are kept in the memory's own metadata, so that they go wherever it goes, also into an export, and are erased with
it: `metadata["earlier_wordings"]`, the oldest first, each `[content, until, corrected_by]`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from memory.model.memories import CONTENT_CHARACTERS_MAX, TIME_MAX, Memory
from memory.model.recorded import shortened

WORDINGS = "earlier_wordings"
WORDINGS_MAX = 20  # of one memory; the oldest go first
WORDINGS_BYTES_MAX = 12_288  # of JSON: metadata of 16 KiB and withdrawn evidence have room besides it in one row
LONG_CHARACTERS_MAX = 2_500  # to which a wording is shortened that alone would be larger


class Corrector(StrEnum):
    USER = "user"
    MEMBER = "member"  # somebody else, in a shared project
    LEARNING = "learning"  # something said later, which superseded it


_IN_PLACE = frozenset((Corrector.USER.value, Corrector.MEMBER.value))


@dataclass(frozen=True, slots=True)
class EarlierWording:
    """What a memory said from `since` to `until` (Unix seconds). `memory_id`: of the row that said it."""

    memory_id: str
    content: str
    since: float
    until: float
    corrected_by: Corrector


def wordings_of(memory: Memory) -> list[EarlierWording]:
    """The oldest first; empty for what is not ours."""
    kept = memory.metadata.get(WORDINGS)
    found: list[EarlierWording] = []
    for one in kept if isinstance(kept, list | tuple) else ():
        since = found[-1].until if found else memory.said_at
        found += [wording] if (wording := _read(memory.id, one, since)) else []
    return found


def _read(memory_id: str, stored: object, since: float) -> EarlierWording | None:
    match stored:
        case [str(content), float() | int() as until, str(by)] if (
            content.strip() and by in _IN_PLACE and 0 <= until <= TIME_MAX
        ):
            return EarlierWording(memory_id, content[:CONTENT_CHARACTERS_MAX], since, float(until), Corrector(by))
    return None


def reworded(before: Memory, after: Memory, *, by: Corrector) -> Memory:
    """`after` with what `before` said among its earlier wordings; unchanged if it says the same."""
    if after.content == before.content:
        return after
    wording = EarlierWording(before.id, before.content, before.updated_at, after.updated_at, by)
    return with_wordings(after, [*wordings_of(before), wording])


def with_wordings(memory: Memory, wordings: Iterable[EarlierWording]) -> Memory:
    """The memory with these, as far as there is room, the latest first; with none of ours if there are none."""
    metadata = plain_metadata_of(memory)
    kept: list[list[Any]] = []
    room = WORDINGS_BYTES_MAX
    for one in reversed(list(wordings)[-WORDINGS_MAX:]):
        stored = [one.content, one.until, one.corrected_by.value]
        if _size(stored) > WORDINGS_BYTES_MAX:
            stored[0] = shortened(one.content, LONG_CHARACTERS_MAX)
        room -= _size(stored)
        if room < 0:
            break
        kept.insert(0, stored)
    return replace(memory, metadata={**metadata, WORDINGS: kept} if kept else metadata)


def without_wordings(memory: Memory, is_meant: Callable[[EarlierWording], bool] = lambda _: True) -> Memory:
    """The memory without the earlier wordings that are meant; the same object if none is."""
    known = wordings_of(memory)
    left = [one for one in known if not is_meant(one)]
    return memory if len(left) == len(known) else with_wordings(memory, left)


def as_worded(memory: Memory) -> list[Memory]:
    """The memory as it was in each of its earlier wordings."""
    return [replace(memory, content=one.content) for one in wordings_of(memory)]


def plain_metadata_of(memory: Memory) -> Mapping[str, Any]:
    return {key: value for key, value in memory.metadata.items() if key != WORDINGS}


def earlier_in(memories: Iterable[Memory], *, newest_id: str) -> list[EarlierWording]:
    """All that these rows said before, the latest first: a memory, its earlier wordings, and what it superseded."""
    found: list[EarlierWording] = []
    for memory in memories:
        own = wordings_of(memory)
        found += own
        if memory.id != newest_id:
            since = own[-1].until if own else memory.said_at
            ended = next((at for at in (memory.superseded_at, memory.invalid_at) if at is not None), memory.updated_at)
            found.append(EarlierWording(memory.id, memory.content, since, ended, Corrector.LEARNING))
    return sorted(found, key=lambda one: one.until, reverse=True)


def _size(stored: object) -> int:
    """Bytes as JSON, with the comma after it."""
    return len(json.dumps(stored, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 2
