"""Shared projects: who belongs to them, and which memories they hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from memory.model.projects import Invitation, ProjectAccess, ProjectMember, ProjectRole, SharedMemory, SharedProject


class Projects(Protocol):
    """Durable, and the same for all processes: every call that begins after a change has returned sees it.

    It decides nothing: callers hold the lock of the project's owner id while they check rights and change something.
    All of a project is found by its key, and all of a user by their id. Raises `Unavailable`.
    """

    async def create(self, project: SharedProject, owner_id: str) -> bool:
        """With its first member, the owner. False, and nothing is done, if the tenant has a project of that id."""

    async def access(self, user_id: str, project_id: str) -> ProjectAccess | None:
        """What the user is in the project of that id that they are a member of; None if there is none."""

    async def access_by_key(self, key: str, user_id: str) -> ProjectAccess | None:
        """Without a role for whoever is no member; None if there is no such project."""

    async def joined(self, user_id: str) -> list[ProjectAccess]:
        """The projects of which the user is a member, oldest first."""

    async def count_chosen(self, user_id: str) -> int:
        """Of these, those that the user created, or has accepted to join."""

    async def members(self, key: str) -> list[ProjectMember]:
        """Who joined first comes first."""

    async def set_roles(self, key: str, roles: Mapping[str, ProjectRole | None], *, at: float) -> None:
        """All of them or none; None removes a member. None of these users has an invitation any more. Ignored if there
        is no such project.
        """

    async def invite(self, invitation: Invitation) -> None:
        """In place of an earlier one of that user to that project. Ignored if there is no such project."""

    async def invitations(self, key: str) -> list[Invitation]:
        """Those that are not answered, oldest first."""

    async def invited(self, user_id: str, *, by: str = "", limit: int) -> list[Invitation]:
        """Those that the user has not answered, of all projects, latest first; `by`: from that user alone."""

    async def accept(self, invitation: Invitation, *, at: float) -> None:
        """Its user becomes a member by choice. Ignored if there is no such project."""

    async def drop_invitation(self, key: str, user_id: str) -> None: ...

    async def delete(self, key: str) -> None:
        """With its members, invitations, readers and entries of memories."""

    async def put(self, entries: Sequence[SharedMemory]) -> None:
        """Add or replace entries of memories. Ignored for a project that does not exist."""

    async def entries(self, memory_ids: Collection[str]) -> dict[str, SharedMemory]:
        """Those that there are, by memory id. One read by key."""

    async def drop(self, memory_ids: Collection[str]) -> None:
        """Nobody may read these memories any more. Durable on return."""

    async def add_reader(self, key: str, user_id: str) -> None:
        """The user's notes may hold memories of that project: to be called before such a note is kept. Ignored for a
        project that does not exist.
        """

    async def readers(self, key: str) -> list[str]:
        """Whoever was added, members or not, until they are forgotten."""

    async def forget_user(self, user_id: str) -> None:
        """For one that is erased: as a reader, and in invitations of and by them, of all projects."""

    async def authored(self, user_id: str) -> list[SharedMemory]:
        """All memories of all projects that the user is the author of, also of projects that they have left."""
