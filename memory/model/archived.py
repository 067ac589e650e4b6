"""How an archived memory is restored, and which marks in its metadata are ours. Pure: `now` is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memory.errors import BadInput
from memory.model.derived import ARCHIVED, REFLECTS, RESTORED
from memory.model.memories import Memory, MemoryStatus, Trust


def restored(memory: Memory, *, now: float) -> Memory:
    """The row as it was before it was put away, marked so that no upkeep puts it away for its age or its likeness.

    Raises `BadInput` for a superseded one: what took its place has to go, or be corrected, first.
    """
    if memory.status is MemoryStatus.SUPERSEDED:
        raise BadInput("only an archived memory can be brought back; what superseded this one still holds")
    if memory.status is MemoryStatus.ACTIVE:
        return memory
    metadata = dict(memory.metadata)
    reason = metadata.pop(ARCHIVED, None)
    if isinstance(reason, Mapping) and "before" in reason:
        metadata[ARCHIVED] = reason["before"]
    metadata[RESTORED] = {"at": now}
    return replace(memory, status=MemoryStatus.ACTIVE, metadata=metadata, updated_at=now)


def kept_keys(memory: Memory) -> list[str]:
    """Our own marks in its metadata, which an edit of the metadata leaves alone."""
    ours = {
        ARCHIVED: memory.status is MemoryStatus.ARCHIVED,
        RESTORED: True,
        REFLECTS: memory.trust is Trust.TOOL,
    }
    return [key for key, is_ours in ours.items() if is_ours and key in memory.metadata]
