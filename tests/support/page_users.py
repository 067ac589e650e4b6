"""What the pages' users have: memories with evidence, uses and a past, receipts, and nothing else."""

from __future__ import annotations

from typing import Any

from page_world import PageWorld

from memory.model import (
    CandidateVerdict,
    CarriedNote,
    Evidence,
    Memory,
    MemoryStatus,
    RecallStatus,
    Receipt,
    ReceiptCandidate,
)
from memory.processes.composition import SYSTEM_CLOCK

DAY = 86_400.0
QUESTION = "What should I bring to the tea party?"


def memory(user: str, name: str, content: str, *, days: float = 1.0, **fields: Any) -> Memory:
    """`days`: how long ago it was said."""
    at = SYSTEM_CLOCK() - days * DAY
    return Memory(f"{user}-{name}", user, content, at, at, at, **fields)


def receipt(user: str, name: str, *memory_ids: str, query: str = QUESTION, hours: float = 2.0) -> Receipt:
    """A chat whose note held these memories, or that found nothing."""
    return Receipt(
        f"r-{user}-{name}",
        user,
        SYSTEM_CLOCK() - hours * 3_600.0,
        RecallStatus.USED if memory_ids else RecallStatus.EMPTY,
        "found" if memory_ids else "nothing_relevant",
        query=query,
        candidates=tuple(ReceiptCandidate(one, 0.8, {}, CandidateVerdict.INJECTED) for one in memory_ids),
        notes=(CarriedNote(None, memory_ids, 21 * len(memory_ids), is_new=True),) if memory_ids else (),
        timings_ms={"embed": 4.2, "search": 6.1, "rank": 1.3},
    )


def fill(world: PageWorld, user: str) -> None:
    """Three memories that are current, one of which replaced another, and one in the archive."""
    world.put(
        memory(
            user,
            "tea",
            "Prefers green tea to coffee",
            days=1,
            category="preference",
            evidence=(Evidence("I'd rather have green tea than coffee", "t1"),),
            access_count=2,
        ),
        memory(user, "city", "Lives in Porto", days=3, evidence=(Evidence("we moved to Porto last week", "t2"),)),
        memory(user, "dog", "Has a dog called Kim", days=3, project_id="home"),
        memory(
            user,
            "old-city",
            "Lives in Braga",
            days=300,
            status=MemoryStatus.SUPERSEDED,
            superseded_by=f"{user}-city",
            superseded_at=SYSTEM_CLOCK(),
        ),
        memory(user, "archived", "Was looking for a used bicycle", days=400, status=MemoryStatus.ARCHIVED),
    )
    world.keep(receipt(user, "tea", f"{user}-tea"), receipt(user, "none", query="What is 2 + 2?", hours=1.0))
