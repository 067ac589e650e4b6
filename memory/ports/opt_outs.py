"""Users who have switched memory off for themselves."""

from __future__ import annotations

from typing import Protocol


class OptOuts(Protocol):
    """Durable, and the same for all processes: every call that begins after a change has returned sees it.

    Kept when a user is erased, so that erasing never resumes recording; therefore users are stored as digests of their
    ids only. Raises `Unavailable`.
    """

    async def since(self, user_id: str) -> float | None:
        """When the user opted out (Unix seconds); None if memory may be used. Some microseconds: asked at each chat."""
        ...

    async def set(self, user_id: str, *, at: float) -> float:
        """The user opts out. Returns since when they have; a repeated call changes nothing. Durable on return."""
        ...

    async def clear(self, user_id: str) -> None:
        """Memory may be used again. Durable on return."""
        ...

    async def count(self) -> int:
        """How many users have opted out."""
        ...


class NoOptOuts:
    """`OptOuts` where no user can opt out."""

    async def since(self, user_id: str) -> float | None:
        return None

    async def set(self, user_id: str, *, at: float) -> float:
        raise NotImplementedError("nobody can opt out here")

    async def clear(self, user_id: str) -> None:
        return None

    async def count(self) -> int:
        return 0
