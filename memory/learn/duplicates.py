"""Finds memories that say the same, and plans which row of each group is kept.

Similarity decides nothing: "I am allergic" and "I am not allergic" have a cosine of 0.957. Rows are duplicates only if
they have the same words in the same order, ignoring case, space and punctuation, and their claims do not differ. Rows
stored by an application are never archived as duplicates, since those are stored as given. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory.learn.consolidation import bounded
from memory.learn.retention import TRUST, RetentionReason, RetentionStep, is_kept_by_hand, put_away
from memory.model import Memory, MemoryStatus, Trust, statement_key
from memory.model.derived import RESTORED

AT_ONCE_MAX = 150  # rows archived per statement in one write; the rest follows in the next round


def united(memories: Iterable[Memory], *, now: float) -> list[list[RetentionStep]]:
    """For each statement with several active rows, the steps of one write; the row that is kept comes first.

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
    """The kept row, with the highest confidence and importance and the latest time of all. Idempotent."""
    rows = [stays, *goes]
    return replace(
        stays,
        updated_at=now,
        said_at=max(row.said_at for row in rows),
        importance=max(row.importance for row in rows),
        confidence=max(row.confidence for row in rows),
        access_count=max(row.access_count for row in rows),  # not a sum: a repeat would add it again
        used_at=max((row.used_at for row in rows if row.used_at is not None), default=None),
        evidence=bounded(list(dict.fromkeys(e for row in rows for e in row.evidence))),
    )
