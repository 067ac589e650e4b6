"""Under which ids an import stores memories, whose ids the file, and so the caller, has chosen. Pure.

One id belongs to one user, in all of a store. A memory that is the caller's here, or was, keeps its id, so that nothing
is stored twice or restored; any other gets one that follows from the caller and the id in the file. So nobody names
the row of another user, learns whether there is one, or names a memory like a path of the API. References between
memories follow. So do those to turns, whose ids the record gives alike (`copied_turn_id`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from memory.model import Evidence, Memory, MemoryStatus, Trust, is_valid_id
from memory.model.derived import ARCHIVED, REFLECTS
from memory.model.raw_words import raw_row_ids
from memory.model.turns import copied_turn_id
from memory.model.withdrawn import with_withdrawn, withdrawn_of

_IDS = uuid.UUID("5d7a3f0e-94c1-5b0e-8f57-0c6e2b1a7d43")


def possible_ids(user_id: str, memories: Iterable[Memory]) -> list[str]:
    """All ids that these memories may get or refer to, for `renamed`."""
    named = dict.fromkeys(one for memory in memories for one in _named(memory) if is_valid_id(one))
    return list(dict.fromkeys([*named, *(imported_id(user_id, one) for one in named)]))


def imported_id(user_id: str, memory_id: str) -> str:
    """The same for each import of that id by that user."""
    return str(uuid.uuid5(_IDS, f"{user_id}\x1f{memory_id}"))


def renamed(user_id: str, memory: Memory, *, own: Collection[str]) -> Memory:
    """The memory as it is stored. `own`: those of `possible_ids` that are the user's, or were until forgotten.

    Rows with raw words stay as they are: their ids follow from the user and the turn.
    """
    if memory.status is MemoryStatus.RAW:
        return memory
    name = partial(_name, user_id, own)
    return replace(memory, id=name(memory.id), superseded_by=name(memory.superseded_by), metadata=_linked(memory, name))


def turn_ids(memory: Memory) -> set[str]:
    kept = withdrawn_of(memory)
    return {*(quoted.turn_id for quoted in (*memory.evidence, *kept.evidence)), *kept.turns} - {""}


def with_turns(user_id: str, memory: Memory, *, own: Collection[str]) -> Memory:
    """The memory with its turns as they are called here. `own`: those of `turn_ids` that are the user's, or were.

    The id of a row with raw words, a valid one of this user, follows that of its turn.
    """

    def name(turn_id: str) -> str:
        return turn_id if turn_id in own or not turn_id else copied_turn_id(user_id, turn_id)

    def quoted_here(quoted: Iterable[Evidence]) -> tuple[Evidence, ...]:
        return tuple(replace(one, turn_id=name(one.turn_id)) for one in quoted)

    here = replace(memory, evidence=quoted_here(memory.evidence))
    if memory.status is MemoryStatus.RAW:
        number = raw_row_ids(user_id, memory.evidence[0].turn_id).index(memory.id)
        return replace(here, id=raw_row_ids(user_id, here.evidence[0].turn_id)[number])
    kept = withdrawn_of(memory)
    if not (kept.evidence or kept.turns):
        return here
    return with_withdrawn(here, replace(kept, evidence=quoted_here(kept.evidence), turns=tuple(map(name, kept.turns))))


def _name(user_id: str, own: Collection[str], memory_id: str) -> str:
    return memory_id if memory_id in own or not is_valid_id(memory_id) else imported_id(user_id, memory_id)


def _named(memory: Memory) -> Iterator[str]:
    found: list[str] = [memory.id, memory.superseded_by]

    def note(memory_id: str) -> str:
        found.append(memory_id)
        return memory_id

    _linked(memory, note)
    yield from found


def _linked(memory: Memory, name: Callable[[str], str]) -> dict[str, Any]:
    """The metadata with our links to other memories as `name` calls them."""
    metadata = dict(memory.metadata)
    grounds, reason = metadata.get(REFLECTS), metadata.get(ARCHIVED)
    if memory.trust is Trust.TOOL and isinstance(grounds, list):
        metadata[REFLECTS] = [name(one) if isinstance(one, str) else one for one in grounds]
    if memory.status is MemoryStatus.ARCHIVED and isinstance(reason, dict) and isinstance(reason.get("of"), str):
        metadata[ARCHIVED] = {**reason, "of": name(reason["of"])}
    kept = withdrawn_of(replace(memory, metadata=metadata))
    if not (kept.superseded_by or kept.replaced):
        return metadata
    kept = replace(kept, superseded_by=name(kept.superseded_by), replaced=tuple(map(name, kept.replaced)))
    return dict(with_withdrawn(replace(memory, metadata=metadata), kept).metadata)
