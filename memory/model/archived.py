"""How an archived memory is restored, and which keys of its metadata are ours. Pure: `now` is an argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memory.errors import BadInput
from memory.model.derived import ARCHIVED, REFLECTS, RESTORED, WITHDRAWN
from memory.model.memories import Memory, MemoryStatus, Trust
from memory.model.withdrawn import is_of_abandoned_branch, withdrawn_of
from memory.model.wordings import WORDINGS, wordings_of


def restored(memory: Memory, *, now: float) -> Memory:
    """The row as it was before archiving, marked so that upkeep does not archive it again for age or similarity.

    Raises `BadInput` for a superseded memory, also one that was superseded before it was archived with its branch: its
    successor has to be corrected first.
    """
    if memory.status is MemoryStatus.SUPERSEDED:
        raise BadInput("only archived memories can be restored; the memory that superseded this one still holds")
    if memory.status is MemoryStatus.RAW:
        raise BadInput("only archived memories can be restored; this row holds the words of a turn")
    if is_of_abandoned_branch(memory) and withdrawn_of(memory).status == MemoryStatus.SUPERSEDED:
        raise BadInput(
            "this memory was superseded before its branch was abandoned; say it again, or correct its successor"
        )
    if memory.status is MemoryStatus.ACTIVE:
        return memory
    metadata = dict(memory.metadata)
    reason = metadata.pop(ARCHIVED, None)
    if isinstance(reason, Mapping) and "before" in reason:
        metadata[ARCHIVED] = reason["before"]
    metadata[RESTORED] = {"at": now}
    return replace(memory, status=MemoryStatus.ACTIVE, metadata=metadata, updated_at=now)


def kept_keys(memory: Memory) -> list[str]:
    """Our own keys in its metadata, which a change of the metadata preserves."""
    ours = {
        ARCHIVED: memory.status is MemoryStatus.ARCHIVED,
        RESTORED: True,
        WITHDRAWN: memory.trust is not Trust.BOOTSTRAPPED,
        REFLECTS: memory.trust is Trust.TOOL,
        WORDINGS: bool(wordings_of(memory)),
    }
    return [key for key, is_ours in ours.items() if is_ours and key in memory.metadata]
