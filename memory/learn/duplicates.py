"""Which memories say the same thing twice, and the one row that stays for all of them.

Likeness decides nothing: "I am allergic" and "I am not allergic" stand at a cosine of 0.957. Two rows are one only if
they say the same words in the same order, case, space and punctuation aside, and their claims do not differ. What an
application stored is never put away for it, for that was stored as given. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory.learn.consolidation import EVIDENCE_MAX
from memory.learn.retention import TRUST, RetentionReason, RetentionStep, is_kept_by_hand, put_away
from memory.model import Evidence, Memory, MemoryStatus, Trust, statement_key
from memory.model.derived import RESTORED

AT_ONCE_MAX = 150  # rows put away for one statement, so that all of it is one write; the others go the next time


def united(memories: Iterable[Memory], *, now: float) -> list[list[RetentionStep]]:
    """For each statement that several active rows make: what to write, the row that stays first.

    Only rows of one project and agent are compared.
    """
    alike: dict[tuple[object, ...], list[Memory]] = {}
    for memory in memories:
        if memory.status is MemoryStatus.ACTIVE and memory.memory_type != "reflective":
            alike.setdefault(_place(memory), []).append(memory)
    return [unit for group in alike.values() if len(group) > 1 for unit in _unit(group, now)]


def _place(memory: Memory) -> tuple[object, ...]:
    claimed = (memory.subject, memory.name, memory.attribute, memory.is_affirmed)
    return (memory.project_id, memory.agent_id, *claimed, statement_key(memory.content))


def _unit(group: Sequence[Memory], now: float) -> list[list[RetentionStep]]:
    stays = max(group, key=lambda m: (is_kept_by_hand(m), TRUST[m.trust], m.access_count, m.confidence, -m.created_at))
    goes = [m for m in group if m is not stays and _may_go(m)]
    if not goes:
        return []
    whole = _with_all(stays, goes, now)
    kept = [RetentionStep(RetentionReason.UNITED, stays, whole)] if whole != replace(stays, updated_at=now) else []
    return [
        [*kept, *(put_away(memory, RetentionReason.DUPLICATE, now=now, of=stays.id) for memory in goes[:AT_ONCE_MAX])]
    ]


def _may_go(memory: Memory) -> bool:
    return memory.trust is not Trust.BOOTSTRAPPED and RESTORED not in memory.metadata


def _with_all(stays: Memory, goes: Sequence[Memory], now: float) -> Memory:
    """The row that stays, as sure, as weighty and as lately said as any of them. Doing it again changes nothing."""
    rows = [stays, *goes]
    return replace(
        stays,
        updated_at=now,
        said_at=max(row.said_at for row in rows),
        importance=max(row.importance for row in rows),
        confidence=max(row.confidence for row in rows),
        access_count=max(row.access_count for row in rows),  # never a sum: a repeat would add it up again
        used_at=max((row.used_at for row in rows if row.used_at is not None), default=None),
        evidence=_bounded(list(dict.fromkeys(e for row in rows for e in row.evidence))),
    )


def _bounded(evidence: list[Evidence]) -> tuple[Evidence, ...]:
    return tuple(evidence if len(evidence) <= EVIDENCE_MAX else [evidence[0], *evidence[-(EVIDENCE_MAX - 1) :]])
