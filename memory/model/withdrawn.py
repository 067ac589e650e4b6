"""How memories come back: what one lost because a branch of its conversation was abandoned, kept in its metadata until
it returns, and what one is that was archived. Pure: `now` is an argument.

`metadata["withdrawn"]`: `evidence`, what was taken from a memory that still stands; and, of an archived memory, what it
was before (`status`, `superseded_by`), the abandoned `turns` among its evidence, and which memories it had superseded
(`replaced`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memory.errors import BadInput
from memory.model.derived import ARCHIVED, REFLECTS, RESTORED, WITHDRAWN
from memory.model.memories import Evidence, Memory, MemoryStatus, Trust
from memory.model.wordings import WORDINGS, wordings_of

BRANCH = "branch"  # the reason in `metadata["archived"]`
WITHDRAWN_EVIDENCE_MAX = 5  # as much as a memory has


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The content of `metadata["withdrawn"]`. `status`: "" while the memory stands."""

    evidence: tuple[Evidence, ...] = ()
    status: str = ""
    superseded_by: str = ""
    turns: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


def withdrawn_of(memory: Memory) -> Withdrawn:
    """Empty for what is not ours: applications may store any metadata."""
    kept = memory.metadata.get(WITHDRAWN)
    if memory.trust is Trust.BOOTSTRAPPED or not isinstance(kept, Mapping):
        return Withdrawn()
    evidence = kept.get("evidence")
    return Withdrawn(
        tuple(Evidence(*map(str, one)) for one in evidence if isinstance(one, list | tuple) and len(one) in (3, 4))
        if isinstance(evidence, list | tuple)
        else (),
        str(kept.get("status", "")),
        str(kept.get("superseded_by", "")),
        _strings(kept.get("turns")),
        _strings(kept.get("replaced")),
    )


def _strings(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def withdrawn_evidence(memory: Memory) -> tuple[Evidence, ...]:
    return withdrawn_of(memory).evidence


def all_evidence(memory: Memory) -> tuple[Evidence, ...]:
    """What it rests on, and what it rested on before a branch was abandoned."""
    return (*memory.evidence, *withdrawn_evidence(memory))


def with_withdrawn(memory: Memory, withdrawn: Withdrawn) -> Memory:
    """The memory with this in its metadata, or without it if there is nothing to keep."""
    metadata = {key: value for key, value in memory.metadata.items() if key != WITHDRAWN}
    kept: dict[str, Any] = {}
    if withdrawn.evidence:
        kept["evidence"] = [e.fields for e in withdrawn.evidence[-WITHDRAWN_EVIDENCE_MAX:]]
    if withdrawn.status:
        kept |= {"status": withdrawn.status, "superseded_by": withdrawn.superseded_by, "turns": list(withdrawn.turns)}
    if withdrawn.replaced:
        kept["replaced"] = list(withdrawn.replaced)
    return replace(memory, metadata=metadata | ({WITHDRAWN: kept} if kept else {}))


def without_withdrawn(memory: Memory, turn_ids: Collection[str]) -> Memory:
    withdrawn = withdrawn_of(memory)
    left = tuple(quoted for quoted in withdrawn.evidence if quoted.turn_id not in turn_ids)
    if len(left) == len(withdrawn.evidence):
        return memory
    return with_withdrawn(memory, replace(withdrawn, evidence=left))


def is_of_abandoned_branch(memory: Memory) -> bool:
    """Whether it is archived because all that it rests on was abandoned."""
    reason = memory.metadata.get(ARCHIVED)
    is_ours = isinstance(reason, Mapping) and reason.get("why") == BRANCH
    return is_ours and memory.status is MemoryStatus.ARCHIVED and memory.trust is not Trust.BOOTSTRAPPED


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
