"""Where a user's working set waits while no process holds it."""

from __future__ import annotations

from typing import Protocol


class Snapshots(Protocol):
    """One blob per user, which nobody here looks into. A cache: any of them may be gone at any time, to make room.

    Readers never wait for writers, of any process. Raises `Unavailable`.
    """

    async def read(self, user_id: str) -> bytes | None:
        """What was last written, whole; None where there is nothing, or it was too large to keep."""
        ...

    async def write(self, user_id: str, snapshot: bytes) -> None:
        """In place of what is there, whole or not at all. Need not survive a power cut."""
        ...

    async def erase(self, user_id: str) -> None:
        """Gone from the disk, and from every later `read`; nothing to do where there is none."""
        ...

    async def erase_all(self) -> None:
        """Every user's: none of them can be of use any more."""
        ...
