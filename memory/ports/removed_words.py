"""Turns whose words left the conversation record while rows with their raw words may remain in the store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol


class RemovedWords(Protocol):
    """Filled by whatever deletes or rewrites what the user said in a turn. Per user. Raises `Unavailable`."""

    async def next_user(self, *, without: Collection[str] = ()) -> str | None:
        """A user with such turns, other than these, or None. Cheap if there is none: may be called every 100 ms."""
        ...

    async def turn_ids(self, user_id: str, *, limit: int) -> list[str]: ...

    async def settle(self, user_id: str, turn_ids: Sequence[str]) -> None:
        """No row of these turns remains."""
        ...
