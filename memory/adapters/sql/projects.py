"""Shared projects on SQLite, in the turn log's database.

What a chat asks is read by key on the event loop: a thread switch takes longer than the read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import msgspec

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection, statements
from memory.model.projects import (
    MemoryVisibility,
    ProjectAccess,
    ProjectMember,
    ProjectRole,
    SharedMemory,
    SharedProject,
)

SQL = statements("projects")

ENTRIES_AT_A_GLANCE = 200  # looked up in half a millisecond


class SqlProjects:
    """`memory.ports.projects.Projects` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def create(self, project: SharedProject, owner_id: str) -> bool:
        return await self._database.write(partial(_created, project=project, owner_id=owner_id))

    async def access(self, tenant: str, project_id: str, user_id: str) -> ProjectAccess | None:
        look = partial(_access_by_id, tenant=tenant, project_id=project_id, user=user_id)
        return await self._database.read_now(look)

    async def access_by_key(self, key: str, user_id: str) -> ProjectAccess | None:
        return await self._database.read_now(partial(_access_by_key, key=key, user=user_id))

    async def joined(self, user_id: str) -> list[ProjectAccess]:
        return await self._database.read(partial(_joined, user_id=user_id))

    async def members(self, key: str) -> list[ProjectMember]:
        return await self._database.read(partial(_members, key=key))

    async def set_roles(self, key: str, roles: Mapping[str, ProjectRole | None], *, at: float) -> None:
        await self._database.write(partial(_roles_set, key=key, roles=roles, at=at))

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

    async def forget_reader(self, user_id: str) -> None:
        await self._database.write(partial(_reader_forgotten, user_id=user_id))

    async def authored(self, user_id: str) -> list[SharedMemory]:
        return await self._database.read(partial(_authored, user_id=user_id))


def _created(connection: Connection, *, project: SharedProject, owner_id: str) -> bool:
    inserted = SQL.insert_project(
        connection, key=project.key, tenant=project.tenant, project_id=project.project_id, created_at=project.created_at
    )
    if inserted.rowcount != 1:
        return False
    _roles_set(connection, key=project.key, roles={owner_id: ProjectRole.OWNER}, at=project.created_at)
    return True


def _access_by_id(connection: Connection, *, tenant: str, project_id: str, user: str) -> ProjectAccess | None:
    row = SQL.access_by_id(connection, tenant=tenant, project_id=project_id, user=user).fetchone()
    return None if row is None else _read_access(row)


def _access_by_key(connection: Connection, *, key: str, user: str) -> ProjectAccess | None:
    row = SQL.access_by_key(connection, key=key, user=user).fetchone()
    return None if row is None else _read_access(row)


def _joined(connection: Connection, *, user_id: str) -> list[ProjectAccess]:
    return [_read_access(row) for row in SQL.projects_of_user(connection, user=user_id).fetchall()]


def _read_access(row: tuple[str, str, str, float, str | None]) -> ProjectAccess:
    key, tenant, project_id, created_at, role = row
    return ProjectAccess(
        SharedProject(key, tenant, project_id, created_at), None if role is None else ProjectRole(role)
    )


def _members(connection: Connection, *, key: str) -> list[ProjectMember]:
    rows = SQL.members_of(connection, key=key)
    return [ProjectMember(user_id, ProjectRole(role), joined_at) for user_id, role, joined_at in rows.fetchall()]


def _roles_set(connection: Connection, *, key: str, roles: Mapping[str, ProjectRole | None], at: float) -> None:
    for user_id, role in roles.items():
        if role is None:
            SQL.delete_member(connection, key=key, user_id=user_id)
        else:
            SQL.put_member(connection, user_id=user_id, role=role.value, at=at, key=key)


def _reader_added(connection: Connection, *, key: str, user_id: str) -> None:
    SQL.insert_reader(connection, user_id=user_id, key=key)


def _readers(connection: Connection, *, key: str) -> list[str]:
    rows = SQL.readers_of(connection, key=key)
    return [user_id for (user_id,) in rows.fetchall()]


def _reader_forgotten(connection: Connection, *, user_id: str) -> None:
    SQL.delete_reader(connection, user_id=user_id)


def _deleted(connection: Connection, *, key: str) -> None:
    SQL.delete_readers(connection, key=key)
    SQL.delete_entries(connection, key=key)
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
