"""Shared projects: their members, the visibility of their memories, and who may do what. Pure.

| role   | read | add | change and forget | members                      | project           |
|--------|------|-----|-------------------|------------------------------|-------------------|
| viewer | yes  |     |                   | leave                        |                   |
| editor | yes  | yes | their own         | leave                        |                   |
| admin  | yes  | yes | anybody's         | viewers and editors, leave   |                   |
| owner  | yes  | yes | anybody's         | all                          | transfer, delete  |

To whoever is no member a project does not exist: nobody is one without having agreed, and their chats and searches
find nothing of it. A memory of it that is public can be read by its id. One that is `owner_only` is its author's alone.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from enum import StrEnum

from memory.model.derived import ARCHIVED, REFLECTS, RESTORED, WITHDRAWN
from memory.model.identity import PROJECT_OWNER_PREFIX, ProjectScope
from memory.model.memories import Memory, MemoryVisibility
from memory.model.wordings import WORDINGS

KEY_DIGITS = 32  # hexadecimal: no two projects have the same by chance
_DIGITS = frozenset("0123456789abcdef")
_KEYS = uuid.UUID("5b0c1f0e-5d5e-4c59-8f0a-0e6a9d9b7a11")
_OURS = frozenset((ARCHIVED, RESTORED, WITHDRAWN, REFLECTS, WORDINGS))


class ProjectRole(StrEnum):
    """From the least to the most powerful."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"
    OWNER = "owner"  # one per project


_RANKS = {role: rank for rank, role in enumerate(ProjectRole)}


def project_key(unique: str) -> str:
    """The key of a new project, from an id that is used for nothing else."""
    return uuid.uuid5(_KEYS, unique).hex


def shared_id(key: str, unique: str) -> str:
    """The id of a memory of that project."""
    return f"{key}.{unique}"


def project_key_of(memory_id: str) -> str:
    """The key of the project that a memory with this id would belong to; "" if it belongs to none."""
    key, dot, _ = memory_id.partition(".")
    return key if dot and len(key) == KEY_DIGITS and _DIGITS.issuperset(key) else ""


@dataclass(frozen=True, slots=True)
class SharedProject:
    """`key`: unique for ever, also if the project is deleted and another one gets its id. `tenant`: "" without tenants.

    An id means to each user the project of that id that they are a member of, at most one. `created_at`: Unix seconds.
    """

    key: str
    tenant: str
    project_id: str
    created_at: float

    @property
    def space(self) -> str:
        """Within which the id is claimed: its tenant. Without tenants it is claimed from nobody else."""
        return self.tenant or self.key

    @property
    def owner_id(self) -> str:
        """To whom the rows of its memories belong. No user has such an id."""
        return PROJECT_OWNER_PREFIX + self.key


@dataclass(frozen=True, slots=True)
class ProjectMember:
    """`joined_at`: Unix seconds; a change of role keeps it."""

    user_id: str
    role: ProjectRole
    joined_at: float


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a user may become in a project, once they agree. `invited_at`: Unix seconds."""

    project: SharedProject
    user_id: str
    role: ProjectRole
    invited_by: str
    invited_at: float


@dataclass(frozen=True, slots=True)
class ProjectAccess:
    """What a user is in a project. `role`: None for whoever is no member."""

    project: SharedProject
    role: ProjectRole | None

    def scope(self, agent_id: str = "") -> ProjectScope:
        """The memories that members search. Authors find what is theirs alone in the project's list only."""
        return ProjectScope(self.project.owner_id, MemoryVisibility.MEMBERS.value, agent_id=agent_id)

    @property
    def may_add(self) -> bool:
        return self.is_at_least(ProjectRole.EDITOR)

    def is_at_least(self, role: ProjectRole) -> bool:
        return self.role is not None and _RANKS[self.role] >= _RANKS[role]

    def may_set(self, before: ProjectRole | None, after: ProjectRole | None) -> bool:
        """Whether this user may give somebody else the role `after` in place of `before`; None: no member.

        The role of an owner is transferred, never given or taken.
        """
        if ProjectRole.OWNER in (before, after):
            return False
        if self.role is ProjectRole.ADMIN:
            return ProjectRole.ADMIN not in (before, after)
        return self.role is ProjectRole.OWNER


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """What decides about a memory of a shared project. `changed_at`: Unix seconds; notes made until then are void."""

    memory_id: str
    project_key: str
    author_id: str
    visibility: MemoryVisibility
    changed_at: float

    @property
    def is_hidden(self) -> bool:
        """From all but its author: it is being shared, taken back or deleted."""
        return self.visibility is MemoryVisibility.OWNER_ONLY

    def may_be_recalled(self, user_id: str, role: ProjectRole | None) -> bool:
        """In chats and searches: never by whoever has not joined the project."""
        return role is not None and self.may_be_read(user_id, role)

    def may_be_read(self, user_id: str, role: ProjectRole | None) -> bool:
        """By whoever names its id."""
        match self.visibility:
            case MemoryVisibility.OWNER_ONLY:
                return user_id == self.author_id
            case MemoryVisibility.MEMBERS:
                return role is not None
            case MemoryVisibility.PUBLIC:
                return True

    def may_be_changed(self, user_id: str, access: ProjectAccess) -> bool:
        """Also whether it may be forgotten."""
        if self.visibility is MemoryVisibility.OWNER_ONLY:
            return user_id == self.author_id
        if user_id == self.author_id:
            return access.may_add
        return access.is_at_least(ProjectRole.ADMIN)


@dataclass(frozen=True, slots=True)
class Tenancy:
    """Whether user ids begin with a tenant, as `token_claims.user_of_tenant` makes them."""

    has_tenants: bool = False

    def tenant_of(self, user_id: str) -> str | None:
        """ "" without tenants; None for an id without one where there are tenants: it shares nothing."""
        if not self.has_tenants:
            return ""
        tenant, slash, _ = user_id.partition("/")
        return tenant if slash else None

    def user_named(self, name: str, *, by: str) -> str:
        """The id of the user whom `by` calls `name`: one of the same tenant."""
        tenant = self.tenant_of(by)
        return f"{tenant}/{name.replace('%', '%25').replace('/', '%2F')}" if tenant else name

    def name_of(self, user_id: str) -> str:
        """The opposite of `user_named`."""
        if not self.tenant_of(user_id):
            return user_id
        return user_id.partition("/")[2].replace("%2F", "/").replace("%25", "%")


ONE_TENANT = Tenancy()


def row_of(memory: Memory, entry: SharedMemory, project: SharedProject) -> Memory:
    """The row in the project's scope. The session stays behind: it is the author's. The audience stands in the place of
    the project: filters admit rows without one, which everybody may read, in any search.
    """
    return replace(
        memory,
        id=entry.memory_id,
        user_id=project.owner_id,
        project_id="" if entry.visibility is MemoryVisibility.PUBLIC else entry.visibility.value,
        session_id="",
        visibility=MemoryVisibility.OWNER_ONLY,
    )


def as_authored(row: Memory, entry: SharedMemory, project_id: str) -> Memory:
    """The memory as its author sees it: theirs, in the project."""
    return replace(row, user_id=entry.author_id, project_id=project_id, visibility=entry.visibility)


def as_seen_by(user_id: str, row: Memory, entry: SharedMemory, project_id: str) -> Memory:
    """The memory as `user_id` may see it: quotes of chats and our notes on them are for the author."""
    memory = as_authored(row, entry, project_id)
    if user_id == entry.author_id:
        return memory
    public = {key: value for key, value in memory.metadata.items() if key not in _OURS}
    return replace(memory, evidence=(), metadata=public, superseded_by="")


def successor_of(owner_id: str, members: list[ProjectMember]) -> ProjectMember | None:
    """Who follows an owner that is erased: of the most powerful of the others, who has been a member for longest."""
    others = [member for member in members if member.user_id != owner_id]
    return min(others, key=lambda one: (-_RANKS[one.role], one.joined_at, one.user_id), default=None)
