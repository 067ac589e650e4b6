"""Profiles of users and of their projects, and which of them have to be built again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from memory.model import Profile, ProfileLine


class Profiles(Protocol):
    """Shared by all processes. Raises `Unavailable`.

    A user is stale from the end of each write under the user's lock until the lines are put at that revision.
    """

    async def get(self, user_id: str, project_ids: Collection[str]) -> dict[str, Profile]:
        """Those that exist, by project; "" is the user's own. Takes microseconds: for use in a request.

        Without the lines of memories that were written since the lines were put: they may have changed.
        """

    async def all(self, user_id: str) -> list[Profile]:
        """All that exist as they were put, by project, the user's own first."""

    async def put(self, user_id: str, lines: Mapping[str, Sequence[ProfileLine]], *, revision: int, now: float) -> bool:
        """Replace the lines of all profiles of the user, by project; pinned lines stay.

        Nothing is stored, and False returned, unless the ledger's revision of the user's memories is still `revision`.
        """

    async def set_own(
        self,
        user_id: str,
        project_id: str,
        *,
        pinned: Sequence[ProfileLine] | None = None,
        is_enabled: bool | None = None,
        now: float,
    ) -> None:
        """Set what the user decides; None leaves it as it is. Durable on return."""

    async def drop(self, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        """Remove the lines of these memories from every profile of the user."""

    async def erase(self, user_id: str, project_id: str = "") -> None:
        """Delete all profiles of the user, or only that of the project, with their pinned lines. Durable on return."""

    async def stale(self, *, limit: int) -> list[str]:
        """Users whose memories were written since their lines were put, those waiting longest first.

        Cheap if there are none: may be called several times a second.
        """

    async def is_stale(self, user_id: str) -> bool:
        """Whether this user's memories were written since the lines were put."""
