"""What becomes of memories as time goes by: how useful each is, and which are put away.

It plans and never writes: every function gives rows as they should stand, with the reason in `metadata["archived"]`.
Nothing here destroys: a row that is put away keeps its words, its evidence and its history. What an application stored,
what the user asked to be kept, and what somebody brought back is never put away for being old. Pure: `now` is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from memory.model import Memory, MemoryStatus, Trust
from memory.model.derived import ARCHIVED, RESTORED

DAY = 86_400.0
EXPIRED = 0.25  # of its usefulness is left to a memory whose time is over: "when was that trip?" is still asked
TRUST = {Trust.BOOTSTRAPPED: 1.0, Trust.EXPLICIT: 1.0, Trust.INFERRED: 0.8, Trust.TOOL: 0.6}
ASKED_FOR = frozenset({Trust.BOOTSTRAPPED, Trust.EXPLICIT})


class RetentionReason(StrEnum):
    """Why upkeep changed a row, or wants to."""

    DUPLICATE = "duplicate"  # put away: another row says the same
    UNITED = "united"  # kept, with the evidence of its duplicates
    QUOTA = "quota"  # put away: the user has too many
    UNUSED = "unused"  # put away: of next to no use for long
    STALE = "stale"  # put away: a reflection whose grounds have changed
    DATED = "dated"  # given the time after which its category is of little use
    REFLECTED = "reflected"  # new: derived from others
    ERASED = "erased"  # deleted for good: put away or superseded for as long as the settings say


@dataclass(frozen=True, slots=True)
class Decay:
    """How one category ages, in seconds; None: it does not."""

    half_life: float | None = None
    expires_after: float | None = None


FADING: Mapping[str, Decay] = {
    "context": Decay(half_life=14 * DAY),  # what was going on that week
    "event": Decay(half_life=180 * DAY),
    "goal": Decay(half_life=365 * DAY),
    "decision": Decay(half_life=730 * DAY),
}  # preferences, facts, skills, habits, constraints and corrections hold until something else is said


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """`quota`: most active memories of one user. `floor`: usefulness below which, for `floor_seconds`, one is put away.

    `erase_after`: seconds from being put away or superseded to being deleted. None, or a floor of 0, switches it off.
    """

    quota: int | None = 20_000
    floor: float = 0.02
    floor_seconds: float = 90 * DAY
    erase_after: float | None = None
    fading: Mapping[str, Decay] = field(default_factory=lambda: FADING)


@dataclass(frozen=True, slots=True)
class RetentionStep:
    """One row to write as `after` stands, or, without `after`, to delete. `before` is None for a new one."""

    why: RetentionReason
    before: Memory | None
    after: Memory | None

    @property
    def memory(self) -> Memory:
        """Whichever there is, the later one first."""
        memory = self.after or self.before
        assert memory is not None, "a step is about a memory"
        return memory


def usefulness(memory: Memory, now: float, fading: Mapping[str, Decay] = FADING) -> float:
    """0..1: what it is worth to keep this at hand. More for what matters, is sure, was asked for, is used, is fresh.

    It grows with importance, confidence, trust and use, and falls with the time since the memory was last said or used,
    in categories that fade. Each doubling of its uses makes the half-life as long again. Past its expiry a quarter.
    """
    worth = memory.importance * (0.5 + 0.5 * memory.confidence) * TRUST[memory.trust]
    half_life = fading.get(memory.category, Decay()).half_life
    if half_life is not None:
        age = max(0.0, now - last_seen(memory))
        worth *= 2.0 ** -(age / (half_life * (1.0 + math.log2(1.0 + max(0, memory.access_count)))))
    return worth * (EXPIRED if memory.expires_at is not None and memory.expires_at <= now else 1.0)


def last_seen(memory: Memory) -> float:
    """When it was last said, stored or used: history from long ago that came in today is not old to us."""
    return max(memory.said_at, memory.created_at, memory.used_at or memory.said_at)


def pruned(memories: Iterable[Memory], rules: RetentionRules, *, now: float) -> list[RetentionStep]:
    """What is put away: first what has been of no use for long, then what the quota has no room for, worst first.

    Inferred memories go before any that somebody asked for, however useless those are.
    """
    active = [memory for memory in memories if memory.status is MemoryStatus.ACTIVE]
    unused = [memory for memory in active if _is_unused(memory, rules, now)]
    gone = {memory.id for memory in unused}
    left = [memory for memory in active if memory.id not in gone]
    surplus = 0 if rules.quota is None else max(0, len(left) - rules.quota)
    order = sorted(left, key=lambda m: (is_kept_by_hand(m), usefulness(m, now, rules.fading), last_seen(m), m.id))
    steps = [put_away(memory, RetentionReason.UNUSED, now=now) for memory in unused]
    return steps + [put_away(memory, RetentionReason.QUOTA, now=now) for memory in order[:surplus]]


def is_kept_by_hand(memory: Memory) -> bool:
    """Whether somebody wanted exactly this kept: an application, the user's own request, or who brought it back."""
    return memory.trust in ASKED_FOR or RESTORED in memory.metadata


def _is_unused(memory: Memory, rules: RetentionRules, now: float) -> bool:
    """Whether it was of next to no use so long ago already, and nothing has brought it up since."""
    then = now - rules.floor_seconds
    if is_kept_by_hand(memory) or last_seen(memory) > then:
        return False
    return usefulness(memory, then, rules.fading) < rules.floor


def dated(memories: Iterable[Memory], rules: RetentionRules, *, now: float) -> list[RetentionStep]:
    """Active memories without an expiry, of categories that are given one."""
    steps = []
    for memory in memories:
        lasts = rules.fading.get(memory.category, Decay()).expires_after
        if lasts is not None and memory.expires_at is None and memory.status is MemoryStatus.ACTIVE:
            after = replace(memory, expires_at=memory.said_at + lasts, updated_at=now)
            steps.append(RetentionStep(RetentionReason.DATED, memory, after))
    return steps


def erasable(memories: Iterable[Memory], rules: RetentionRules, *, now: float) -> list[RetentionStep]:
    """What was put away, or superseded, so long ago that the settings want it deleted."""
    if rules.erase_after is None:
        return []
    old = [m for m in memories if (since := _out_since(m)) is not None and since <= now - rules.erase_after]
    return [RetentionStep(RetentionReason.ERASED, memory, None) for memory in old]


def _out_since(memory: Memory) -> float | None:
    if memory.status is MemoryStatus.SUPERSEDED:
        return memory.superseded_at or memory.updated_at
    if memory.status is MemoryStatus.ARCHIVED:
        return memory.updated_at  # a row that is put away is written to only when it is brought back
    return None


def put_away(memory: Memory, why: RetentionReason, *, now: float, **details: str) -> RetentionStep:
    """The row out of recall, with the reason; what the owner's metadata held under that name is kept inside."""
    reason: dict[str, Any] = {"why": why.value, "at": now, **details}
    if ARCHIVED in memory.metadata:
        reason["before"] = memory.metadata[ARCHIVED]
    metadata = {**memory.metadata, ARCHIVED: reason}
    return RetentionStep(why, memory, replace(memory, status=MemoryStatus.ARCHIVED, metadata=metadata, updated_at=now))


def totals(steps: Sequence[RetentionStep]) -> dict[str, int]:
    """How many steps of each kind, for a report."""
    counts: dict[str, int] = {}
    for step in steps:
        counts[step.why.value] = counts.get(step.why.value, 0) + 1
    return counts
