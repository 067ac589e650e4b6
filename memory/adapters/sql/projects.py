"""Shared projects in SQL, in the turn log's database.

What a chat asks is read by key, on SQLite on the event loop: a thread switch takes longer than the read. What a user
is in a project is looked for among their memberships: a microsecond each, and others make none of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements
from memory.model.memories import MemoryVisibility
from memory.model.projects import Invitation, ProjectAccess, ProjectMember, ProjectRole, SharedMemory, SharedProject

SQL = statements("projects")

ENTRIES_AT_A_GLANCE = 200  # looked up in half a millisecond


class SqlProjects:
    """`memory.ports.projects.Projects` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def create(self, project: SharedProject, owner_id: str) -> bool:
        return await self._database.write(partial(_created, project=project, owner_id=owner_id))

    async def access(self, user_id: str, project_id: str) -> ProjectAccess | None:
        return await self._database.read_now(partial(_access_by_id, user=user_id, project_id=project_id))

    async def access_by_key(self, key: str, user_id: str) -> ProjectAccess | None:
        return await self._database.read_now(partial(_access_by_key, key=key, user=user_id))

    async def joined(self, user_id: str) -> list[ProjectAccess]:
        return await self._database.read(partial(_joined, user_id=user_id))

    async def count_chosen(self, user_id: str) -> int:
        return await self._database.read(partial(_count_chosen, user_id=user_id))

    async def members(self, key: str) -> list[ProjectMember]:
        return await self._database.read(partial(_members, key=key))

    async def set_roles(self, key: str, roles: Mapping[str, ProjectRole | None], *, at: float) -> None:
        await self._database.write(partial(_roles_set, key=key, roles=roles, at=at))

    async def invite(self, invitation: Invitation) -> None:
        await self._database.write(partial(_invited, invitation=invitation))

    async def invitations(self, key: str) -> list[Invitation]:
        return await self._database.read(partial(_invitations, key=key))

    async def invited(self, user_id: str, *, by: str = "", limit: int) -> list[Invitation]:
        return await self._database.read(partial(_invitations_of_user, user_id=user_id, by=by, limit=limit))

    async def accept(self, invitation: Invitation, *, at: float) -> None:
        await self._database.write(partial(_accepted, invitation=invitation, at=at))

    async def drop_invitation(self, key: str, user_id: str) -> None:
        await self._database.write(partial(_invitation_dropped, key=key, user_id=user_id))

    async def delete(self, key: str) -> None:
        await self._database.write(partial(_deleted, key=key))

    async def put(self, entries: Sequence[SharedMemory]) -> None:
        await self._database.write(partial(_put, entries=entries))

    async def entries(self, memory_ids: Collection[str]) -> dict[str, SharedMemory]:
        if not memory_ids:
            return {}
        look = partial(_entries, memory_ids=memory_ids)
        is_few = len(memory_ids) <= ENTRIES_AT_A_GLANCE
        found = await (self._database.read_now(look) if is_few else self._database.read(look))
        return {entry.memory_id: entry for entry in found}

    async def drop(self, memory_ids: Collection[str]) -> None:
        await self._database.write(partial(_dropped, memory_ids=memory_ids))

    async def add_reader(self, key: str, user_id: str) -> None:
        await self._database.write(partial(_reader_added, key=key, user_id=user_id))

    async def readers(self, key: str) -> list[str]:
        return await self._database.read(partial(_readers, key=key))

    async def forget_user(self, user_id: str) -> None:
        await self._database.write(partial(_user_forgotten, user_id=user_id))

    async def authored(self, user_id: str) -> list[SharedMemory]:
        return await self._database.read(partial(_authored, user_id=user_id))


def _created(connection: Connection, *, project: SharedProject, owner_id: str) -> bool:
    inserted = SQL.insert_project(
        connection, key=project.key, tenant=project.space, project_id=project.project_id, created_at=project.created_at
    )
    if inserted.rowcount != 1:
        return False
    _joined_by_choice(connection, project.key, owner_id, ProjectRole.OWNER, at=project.created_at)
    return True


def _joined_by_choice(connection: Connection, key: str, user_id: str, role: ProjectRole, *, at: float) -> None:
    _roles_set(connection, key=key, roles={user_id: role}, at=at)
    SQL.choose_membership(connection, user_id=user_id, key=key)


def _access_by_id(connection: Connection, *, user: str, project_id: str) -> ProjectAccess | None:
    row = SQL.access_by_id(connection, user=user, project_id=project_id).fetchone()
    return None if row is None else _read_access(row)


def _access_by_key(connection: Connection, *, key: str, user: str) -> ProjectAccess | None:
    row = SQL.access_by_key(connection, key=key, user=user).fetchone()
    return None if row is None else _read_access(row)


def _joined(connection: Connection, *, user_id: str) -> list[ProjectAccess]:
    return [_read_access(row) for row in SQL.projects_of_user(connection, user=user_id).fetchall()]


def _read_access(row: Sequence[Any]) -> ProjectAccess:
    *project, role = row
    return ProjectAccess(_project(*project), None if role is None else ProjectRole(role))


def _project(key: str, space: str, project_id: str, created_at: float) -> SharedProject:
    return SharedProject(key, "" if space == key else space, project_id, created_at)


def _count_chosen(connection: Connection, *, user_id: str) -> int:
    return int(SQL.count_chosen(connection, user=user_id).fetchone()[0])


def _members(connection: Connection, *, key: str) -> list[ProjectMember]:
    rows = SQL.members_of(connection, key=key)
    return [ProjectMember(user_id, ProjectRole(role), joined_at) for user_id, role, joined_at in rows.fetchall()]


def _roles_set(connection: Connection, *, key: str, roles: Mapping[str, ProjectRole | None], at: float) -> None:
    for user_id, role in roles.items():
        _invitation_dropped(connection, key=key, user_id=user_id)
        if role is None:
            SQL.delete_member(connection, key=key, user_id=user_id)
            SQL.delete_choice(connection, key=key, user_id=user_id)
        else:
            SQL.put_member(connection, user_id=user_id, role=role.value, at=at, key=key)


def _invited(connection: Connection, *, invitation: Invitation) -> None:
    one = invitation
    SQL.put_invitation(
        connection,
        user_id=one.user_id,
        role=one.role.value,
        invited_by=one.invited_by,
        at=one.invited_at,
        key=one.project.key,
    )


def _invitations(connection: Connection, *, key: str) -> list[Invitation]:
    return [_invitation(*row) for row in SQL.invitations_to_project(connection, key=key).fetchall()]


def _invitations_of_user(connection: Connection, *, user_id: str, by: str, limit: int) -> list[Invitation]:
    rows = SQL.invitations_of_user(connection, user=user_id, by=by, limit=limit)
    return [_invitation(*row) for row in rows.fetchall()]


def _invitation(*row: Any) -> Invitation:  # noqa: ANN401 - of any column
    *project, user_id, role, invited_by, invited_at = row
    return Invitation(_project(*project), user_id, ProjectRole(role), invited_by, invited_at)


def _accepted(connection: Connection, *, invitation: Invitation, at: float) -> None:
    _joined_by_choice(connection, invitation.project.key, invitation.user_id, invitation.role, at=at)


def _invitation_dropped(connection: Connection, *, key: str, user_id: str) -> None:
    SQL.delete_invitation(connection, key=key, user_id=user_id)


def _reader_added(connection: Connection, *, key: str, user_id: str) -> None:
    SQL.insert_reader(connection, user_id=user_id, key=key)


def _readers(connection: Connection, *, key: str) -> list[str]:
    rows = SQL.readers_of(connection, key=key)
    return [user_id for (user_id,) in rows.fetchall()]


def _user_forgotten(connection: Connection, *, user_id: str) -> None:
    SQL.delete_reader(connection, user_id=user_id)
    SQL.delete_invitations_of_user(connection, user_id=user_id)
    SQL.delete_choices_of_user(connection, user_id=user_id)


def _deleted(connection: Connection, *, key: str) -> None:
    SQL.delete_readers(connection, key=key)
    SQL.delete_entries(connection, key=key)
    SQL.delete_invitations(connection, key=key)
    SQL.delete_choices(connection, key=key)
    SQL.delete_members(connection, key=key)
    SQL.delete_project(connection, key=key)


def _put(connection: Connection, *, entries: Sequence[SharedMemory]) -> None:
    SQL.put_entry.many(
        connection,
        [
            {
                "memory_id": one.memory_id,
                "author_id": one.author_id,
                "visibility": one.visibility.value,
                "changed_at": one.changed_at,
                "project_key": one.project_key,
            }
            for one in entries
        ],
    )


def _entries(connection: Connection, *, memory_ids: Collection[str]) -> list[SharedMemory]:
    return [_entry(row) for row in SQL.entries_by_id(connection, memory_ids=_json(memory_ids))]


def _authored(connection: Connection, *, user_id: str) -> list[SharedMemory]:
    return [_entry(row) for row in SQL.entries_of_author(connection, author_id=user_id)]


def _entry(row: tuple[str, str, str, str, float]) -> SharedMemory:
    memory_id, key, author_id, visibility, changed_at = row
    return SharedMemory(memory_id, key, author_id, MemoryVisibility(visibility), changed_at)


def _dropped(connection: Connection, *, memory_ids: Collection[str]) -> None:
    SQL.delete_entries_by_id(connection, memory_ids=_json(memory_ids))


def _json(values: Collection[str]) -> str:
    return msgspec.json.encode(list(values)).decode()
