"""What upkeep needs from the world: how often memories went into prompts, and whose turn it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class UsageCount:
    """Of one memory: `counted` uses that nobody set out to store yet, on top of `total`, which somebody did.

    `used_at`: when it last went into a prompt. A `total` below what the store has is of no account.
    """

    counted: int
    total: int
    used_at: float

    def on_top_of(self, stored: int) -> int:
        """What `access_count` has to be, where the store has `stored`."""
        return max(stored, self.total) + self.counted


class UsageCounts(Protocol):
    """How often each memory went into a note, counted beside the requests, until upkeep brings it into the store.

    Counts of several processes add up. Losing some, in a crash or under pressure, costs a little of a memory's rank
    among those to put away, and nothing else. All but `count` raise `Unavailable`.
    """

    def count(self, user_id: str, memory_ids: Collection[str], *, at: float) -> None:
        """One use of each. Durable some seconds later, with many others in one write. Never waits, never raises."""
        ...

    async def unstored(self, user_id: str, *, limit: int) -> dict[str, UsageCount]:
        """Those of the user's memories whose uses the store does not have yet, by id, in the order of the ids."""
        ...

    async def begin_store(self, user_id: str, stored: Mapping[str, int]) -> None:
        """We set out to write the uses of these memories, of which the store has `stored`; `waiting` tells how many.

        Remembered, so that whoever dies before the write has it done right by the next one: no use counts twice. Hold
        the user's lock.
        """
        ...

    async def end_store(self, user_id: str, memory_ids: Collection[str]) -> None:
        """The store has what `settle` told; what was counted since then stays."""
        ...

    async def drop(self, user_id: str, memory_ids: Collection[str]) -> None:
        """Forget their counts; an empty collection means all of the user's."""
        ...


class UpkeepSchedule(Protocol):
    """Whose memories are to be looked after now, across processes: one user at a time. Raises `Unavailable`."""

    async def users(self, *, after: str, limit: int) -> Sequence[str]:
        """Users whose memories were ever written to, in the order of their ids, those behind `after`; "" begins."""
        ...

    async def next_due(self, *, now: float, every: float, patience: float) -> str | None:
        """A user whose last round ended `every` seconds ago, theirs from now on; None: nobody, or somebody is at work.

        Who is seen for the first time is due `every` seconds later. A round that has not ended after `patience` seconds
        is taken for dead.
        """
        ...

    async def ended(self, user_id: str, *, now: float) -> None:
        """The user's round is over, well or not: the next one is due in its time."""
        ...
