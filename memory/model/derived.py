"""What hangs on other memories: duplicates that were put away for them, and what was derived from them.

Both say what those say, so they go when those are forgotten. The marks stand in `metadata`, under names of our own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from memory.model.memories import Memory, MemoryStatus, Trust

ARCHIVED = "archived"  # why and when upkeep put the memory away; `of`: the one that says the same
RESTORED = "restored"  # when somebody brought it back
REFLECTS = "reflects"  # the ids that a reflection stands on


def stands_on(memory: Memory) -> frozenset[str]:
    """The ids of its grounds; none for what is no reflection of ours."""
    grounds = memory.metadata.get(REFLECTS) if memory.trust is Trust.TOOL else None
    return frozenset(one for one in grounds if isinstance(one, str)) if isinstance(grounds, list) else frozenset()


def hanging_on(memories: Iterable[Memory], memory_ids: Collection[str]) -> list[str]:
    """Which of them go when those are forgotten: what is forgotten must not live on in a duplicate or a reflection."""
    found, left, has_grown = set(memory_ids), list(memories), True
    while has_grown:
        more = {m.id for m in left if m.id not in found and (stands_on(m) & found or _same_as(m) in found)}
        found |= more
        has_grown = bool(more)
    return sorted(found - set(memory_ids))


def _same_as(memory: Memory) -> str:
    """The row that stayed when this was put away for saying the same, or ""."""
    reason = memory.metadata.get(ARCHIVED) if memory.status is MemoryStatus.ARCHIVED else None
    return str(reason.get("of", "")) if isinstance(reason, Mapping) else ""
