"""Uses of memories that one process has counted and not written yet."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

GATHERED_MAX = 10_000  # memories between two writes; what comes beyond them is not counted


@dataclass(slots=True)
class _PendingCount:
    count: int
    at: float


class UsageTally:
    """By user and memory: how often, and when last."""

    def __init__(self) -> None:
        self._gathered: dict[tuple[str, str], _PendingCount] = {}

    @property
    def is_empty(self) -> bool:
        return not self._gathered

    def count(self, user_id: str, memory_ids: Collection[str], *, at: float) -> None:
        for memory_id in memory_ids:
            pending = self._gathered.get((user_id, memory_id))
            if pending is not None:
                pending.count, pending.at = pending.count + 1, max(pending.at, at)
            elif len(self._gathered) < GATHERED_MAX:
                self._gathered[user_id, memory_id] = _PendingCount(1, at)

    def drop(self, user_id: str, memory_ids: Collection[str]) -> None:
        """All of the user, where no memories are named."""
        for key in [key for key in self._gathered if key[0] == user_id and (not memory_ids or key[1] in memory_ids)]:
            del self._gathered[key]

    def taken(self) -> dict[str, list[tuple[str, int, float]]]:
        """By user: memory, count and time. From now on it is empty."""
        gathered, self._gathered = self._gathered, {}
        by_user: dict[str, list[tuple[str, int, float]]] = {}
        for (user_id, memory_id), pending in gathered.items():
            by_user.setdefault(user_id, []).append((memory_id, pending.count, pending.at))
        return by_user
