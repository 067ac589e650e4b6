"""The ports of upkeep: how often memories were used, and which user is due."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class UsageCount:
    """Uses of one memory. `used_at`: when it was last part of a prompt."""

    counted: int
    used_at: float


class UsageCounts(Protocol):
    """Counts how often each memory is part of a note, in the background of requests, until upkeep stores the counts.

    Counts of several processes are summed. Losing some in a crash or under load slightly affects which memories are
    archived, and nothing else. All methods except `count` raise `Unavailable`.
    """

    def count(self, user_id: str, memory_ids: Collection[str], *, at: float) -> None:
        """Count one use of each. Written a second later at the latest. Never waits, never raises."""

    async def unstored(self, user_id: str, *, limit: int) -> dict[str, UsageCount]:
        """Counts that the store does not have yet, by memory id, ordered by id."""

    async def take(self, user_id: str, memory_ids: Collection[str]) -> dict[str, UsageCount]:
        """Those of these memories, for whoever stores them: they are gone here, so that no use counts twice."""

    async def drop(self, user_id: str, memory_ids: Collection[str]) -> None:
        """Delete their counts; an empty collection means all of the user's."""


class UpkeepSchedule(Protocol):
    """Schedules upkeep across processes: one user at a time. Raises `Unavailable`."""

    async def users(self, *, after: str, limit: int) -> Sequence[str]:
        """Users with memories, ordered by id, after `after`; "" starts from the beginning."""

    async def next_due(self, *, now: float, every: float, patience: float) -> str | None:
        """Claim a user whose last round ended `every` seconds ago; None: nobody is due, or a round is in progress.

        A new user is due `every` seconds after first seen. A round that takes longer than `patience` seconds counts as
        dead.
        """

    async def ended(self, user_id: str, *, now: float) -> None:
        """The user's round is over, successful or not; the next one is due after the interval."""
