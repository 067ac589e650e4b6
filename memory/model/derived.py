"""Dependencies between memories: archived duplicates, and reflections derived from other memories.

Both repeat the content of other memories, so they are deleted with those. The links are our own keys in `metadata`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from memory.model.memories import Memory, MemoryStatus, Trust

ARCHIVED = "archived"  # why and when upkeep archived the memory; `of`: the id of its duplicate
RESTORED = "restored"  # when it was restored
WITHDRAWN = "withdrawn"  # what a memory lost with an abandoned branch of a conversation, to be given back
REFLECTS = "reflects"  # the ids of the memories that a reflection is derived from


def stands_on(memory: Memory) -> frozenset[str]:
    """The ids of its grounds; empty unless it is a reflection of ours."""
    grounds = memory.metadata.get(REFLECTS) if memory.trust is Trust.TOOL else None
    return frozenset(one for one in grounds if isinstance(one, str)) if isinstance(grounds, list) else frozenset()


def hanging_on(memories: Iterable[Memory], memory_ids: Collection[str]) -> list[str]:
    """Ids of those to delete with `memory_ids`: forgotten content must not remain in a duplicate or a reflection."""
    found, left, has_grown = set(memory_ids), list(memories), True
    while has_grown:
        more = {m.id for m in left if m.id not in found and (stands_on(m) & found or _same_as(m) in found)}
        found |= more
        has_grown = bool(more)
    return sorted(found - set(memory_ids))


def _same_as(memory: Memory) -> str:
    """The id of the row of which this is an archived duplicate, or ""."""
    reason = memory.metadata.get(ARCHIVED) if memory.status is MemoryStatus.ARCHIVED else None
    return str(reason.get("of", "")) if isinstance(reason, Mapping) else ""
