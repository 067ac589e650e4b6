"""Plans which memories upkeep unites, archives, expires or deletes: by what they say, and by their usefulness.

Rows are returned in their new state, those put away with the reason in `metadata["archived"]`; nothing is written.
An archived row keeps its text, evidence and history and can be restored. Memories stored by an application, requested
by the user, or restored by somebody are never archived for their age.

Similarity makes no duplicates: "I am allergic" and "I am not allergic" have a cosine of 0.957. Rows are duplicates
only if they have the same words in the same order, ignoring case, space and punctuation, and their claims do not
differ. Rows stored by an application are no duplicates, since those are stored as given. Pure: `now` is an argument.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from memory.learn.consolidation import bounded
from memory.model import Memory, MemoryStatus, Trust, statement_key
from memory.model.derived import ARCHIVED, RESTORED

DAY = 86_400.0
EXPIRED = 0.25  # factor for an expired memory: "when was that trip?" is still asked
TRUST = {Trust.BOOTSTRAPPED: 1.0, Trust.EXPLICIT: 1.0, Trust.INFERRED: 0.8, Trust.TOOL: 0.6}
ASKED_FOR = frozenset({Trust.BOOTSTRAPPED, Trust.EXPLICIT})
AT_ONCE_MAX = 150  # rows archived per statement in one write; the rest follows in the next round


class RetentionReason(StrEnum):
    """Why upkeep changes a row."""

    DUPLICATE = "duplicate"  # archived: another row says the same
    UNITED = "united"  # kept, with the evidence of its duplicates
    QUOTA = "quota"  # archived: the user has too many memories
    UNUSED = "unused"  # archived: of little use for a long time
    STALE = "stale"  # archived: a reflection whose grounds have changed
    DATED = "dated"  # given the expiry of its category
    REFLECTED = "reflected"  # new: derived from others
    SPLIT = "split"  # one row for each fact, of a row of an older release
    ERASED = "erased"  # deleted: archived or superseded for as long as configured


@dataclass(frozen=True, slots=True)
class Decay:
    """How one category ages, in seconds; None: not at all."""

    half_life: float | None = None
    expires_after: float | None = None


FADING: Mapping[str, Decay] = {
    "context": Decay(half_life=14 * DAY),  # temporary circumstances
    "event": Decay(half_life=180 * DAY),
    "goal": Decay(half_life=365 * DAY),
    "decision": Decay(half_life=730 * DAY),
}  # preferences, facts, skills, habits, constraints and corrections hold until they are changed


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """`quota`: most active memories of one user. `floor`: usefulness below which a memory is archived after
    `floor_seconds`.

    `erase_after`: seconds from archiving or supersession to deletion. None, or a floor of 0, disables a rule.
    """

    quota: int | None = 20_000
    floor: float = 0.02  # of a memory of middling worth (0.64) after five half-lives
    floor_seconds: float = 90 * DAY  # what is asked about once a quarter stays
    erase_after: float | None = None
    fading: Mapping[str, Decay] = field(default_factory=lambda: FADING)


@dataclass(frozen=True, slots=True)
class RetentionStep:
    """One row: write `after`, or, if that is None, delete the row. `before` is None for a new one."""

    why: RetentionReason
    before: Memory | None
    after: Memory | None

    @property
    def memory(self) -> Memory:
        """The later of both states."""
        memory = self.after or self.before
        assert memory is not None, "a step is about a memory"
        return memory


def usefulness(memory: Memory, now: float, fading: Mapping[str, Decay] = FADING) -> float:
    """0..1: higher for memories that are important, certain, requested, used and recent.

    It grows with importance, confidence, trust and use, and decays with the time since the memory was last said or
    used, in categories with a half-life. Each doubling of the use count adds one half-life. After expiry a quarter
    remains.
    """
    worth = memory.importance * (0.5 + 0.5 * memory.confidence) * TRUST[memory.trust]
    half_life = fading.get(memory.category, Decay()).half_life
    if half_life is not None:
        age = max(0.0, now - last_seen(memory))
        worth *= 2.0 ** -(age / (half_life * (1.0 + math.log2(1.0 + max(0, memory.access_count)))))
    return worth * (EXPIRED if memory.expires_at is not None and memory.expires_at <= now else 1.0)


def last_seen(memory: Memory) -> float:
    """When it was last said, stored or used: imported history counts from the import."""
    return max(memory.said_at, memory.created_at, memory.used_at or memory.said_at)


def pruned(memories: Iterable[Memory], rules: RetentionRules, *, now: float) -> list[RetentionStep]:
    """Steps that archive memories: first those unused for long, then those beyond the quota, least useful first.

    Inferred memories go before any that somebody asked for, even less useful ones.
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
    """Whether somebody wanted exactly this kept: an application, the user's request, or whoever restored it."""
    return memory.trust in ASKED_FOR or RESTORED in memory.metadata


def _is_unused(memory: Memory, rules: RetentionRules, now: float) -> bool:
    """Whether its usefulness was below the floor `floor_seconds` ago, and it was not used since."""
    then = now - rules.floor_seconds
    if is_kept_by_hand(memory) or last_seen(memory) > then:
        return False
    return usefulness(memory, then, rules.fading) < rules.floor


def dated(memories: Iterable[Memory], rules: RetentionRules, *, now: float) -> list[RetentionStep]:
    """Steps that set the expiry of active memories whose category has one."""
    steps = []
    for memory in memories:
        lasts = rules.fading.get(memory.category, Decay()).expires_after
        if lasts is not None and memory.expires_at is None and memory.status is MemoryStatus.ACTIVE:
            after = replace(memory, expires_at=memory.said_at + lasts, updated_at=now)
            steps.append(RetentionStep(RetentionReason.DATED, memory, after))
    return steps


def erasable(memories: Iterable[Memory], rules: RetentionRules, *, now: float) -> list[RetentionStep]:
    """Steps that delete rows archived or superseded longer ago than the settings allow."""
    if rules.erase_after is None:
        return []
    old = [m for m in memories if (since := _out_since(m)) is not None and since <= now - rules.erase_after]
    return [RetentionStep(RetentionReason.ERASED, memory, None) for memory in old]


def _out_since(memory: Memory) -> float | None:
    if memory.status is MemoryStatus.SUPERSEDED:
        return memory.superseded_at or memory.updated_at
    if memory.status is MemoryStatus.ARCHIVED:
        return memory.updated_at  # an archived row is written to only when it is restored
    return None


def put_away(memory: Memory, why: RetentionReason, *, now: float, **details: str) -> RetentionStep:
    """A step that archives the row, with the reason; user metadata of the same name is kept inside it."""
    reason: dict[str, Any] = {"why": why.value, "at": now, **details}
    if ARCHIVED in memory.metadata:
        reason["before"] = memory.metadata[ARCHIVED]
    metadata = {**memory.metadata, ARCHIVED: reason}
    return RetentionStep(why, memory, replace(memory, status=MemoryStatus.ARCHIVED, metadata=metadata, updated_at=now))


def totals(steps: Sequence[RetentionStep]) -> dict[str, int]:
    return Counter(step.why.value for step in steps)


def united(memories: Iterable[Memory], *, now: float) -> list[list[RetentionStep]]:
    """For each statement with several active rows, the steps of one write; the row that is kept comes first.

    Only rows of one project and agent are compared.
    """
    alike: dict[tuple[object, ...], list[Memory]] = {}
    for memory in memories:
        if memory.status is MemoryStatus.ACTIVE and memory.memory_type != "reflective":
            claimed = (memory.subject, memory.name, memory.attribute, memory.is_affirmed)
            place = (memory.project_id, memory.agent_id, *claimed, statement_key(memory.content))
            alike.setdefault(place, []).append(memory)
    return [unit for group in alike.values() if len(group) > 1 for unit in _unit(group, now)]


def _unit(group: Sequence[Memory], now: float) -> list[list[RetentionStep]]:
    stays = max(group, key=lambda m: (is_kept_by_hand(m), TRUST[m.trust], m.access_count, m.confidence, -m.created_at))
    others = [memory for memory in group if memory is not stays]
    goes = [one for one in others if one.trust is not Trust.BOOTSTRAPPED and RESTORED not in one.metadata]
    if not goes:
        return []
    whole = _with_all(stays, goes, now)
    kept = [RetentionStep(RetentionReason.UNITED, stays, whole)] if whole != replace(stays, updated_at=now) else []
    away = [put_away(memory, RetentionReason.DUPLICATE, now=now, of=stays.id) for memory in goes[:AT_ONCE_MAX]]
    return [[*kept, *away]]


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
