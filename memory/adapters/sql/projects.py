"""Shared projects on SQLite, in the turn log's database.

What a chat asks is read by key on the event loop: a thread switch takes longer than the read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import msgspec

from memory.adapters.sql.database import SqlDatabase
from memory.model.projects import (
    MemoryVisibility,
    ProjectAccess,
    ProjectMember,
    ProjectRole,
    SharedMemory,
    SharedProject,
)

ENTRIES_AT_A_GLANCE = 200  # looked up in half a millisecond

_ACCESS = (
    "SELECT key, tenant, project_id, created_at, role FROM projects "
    "LEFT JOIN project_members ON project_key = key AND user_id = :user WHERE "
)
_JOINED = (
    "SELECT key, tenant, project_id, created_at, role FROM project_members "
    "JOIN projects ON key = project_key WHERE user_id = :user ORDER BY created_at, key"
)
_ENTRY = "SELECT memory_id, project_key, author_id, visibility, changed_at FROM project_memories WHERE "


class SqlProjects:
    """`memory.ports.projects.Projects` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def create(self, project: SharedProject, owner_id: str) -> bool:
        return await self._database.write(partial(_created, project=project, owner_id=owner_id))

    async def access(self, tenant: str, project_id: str, user_id: str) -> ProjectAccess | None:
        found = partial(_access, where="tenant = :tenant AND project_id = :project_id")
        return await self._database.read_now(partial(found, user=user_id, tenant=tenant, project_id=project_id))

    async def access_by_key(self, key: str, user_id: str) -> ProjectAccess | None:
        return await self._database.read_now(partial(_access, where="key = :key", user=user_id, key=key))

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
        look = partial(_entries, where="memory_id IN (SELECT value FROM json_each(?))", value=_json(memory_ids))
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
        return await self._database.read(partial(_entries, where="author_id = ? ORDER BY memory_id", value=user_id))


def _created(connection: sqlite3.Connection, *, project: SharedProject, owner_id: str) -> bool:
    inserted = connection.execute(
        "INSERT OR IGNORE INTO projects (key, tenant, project_id, created_at) VALUES (?, ?, ?, ?)",
        (project.key, project.tenant, project.project_id, project.created_at),
    )
    if inserted.rowcount != 1:
        return False
    _roles_set(connection, key=project.key, roles={owner_id: ProjectRole.OWNER}, at=project.created_at)
    return True


def _access(connection: sqlite3.Connection, *, where: str, user: str, **named: str) -> ProjectAccess | None:
    row = connection.execute(_ACCESS + where, {"user": user, **named}).fetchone()
    return None if row is None else _read_access(row)


def _joined(connection: sqlite3.Connection, *, user_id: str) -> list[ProjectAccess]:
    return [_read_access(row) for row in connection.execute(_JOINED, {"user": user_id}).fetchall()]


def _read_access(row: tuple[str, str, str, float, str | None]) -> ProjectAccess:
    key, tenant, project_id, created_at, role = row
    return ProjectAccess(
        SharedProject(key, tenant, project_id, created_at), None if role is None else ProjectRole(role)
    )


def _members(connection: sqlite3.Connection, *, key: str) -> list[ProjectMember]:
    rows = connection.execute(
        "SELECT user_id, role, joined_at FROM project_members WHERE project_key = ? ORDER BY joined_at, user_id", (key,)
    )
    return [ProjectMember(user_id, ProjectRole(role), joined_at) for user_id, role, joined_at in rows.fetchall()]


def _roles_set(connection: sqlite3.Connection, *, key: str, roles: Mapping[str, ProjectRole | None], at: float) -> None:
    for user_id, role in roles.items():
        if role is None:
            connection.execute("DELETE FROM project_members WHERE project_key = ? AND user_id = ?", (key, user_id))
        else:
            connection.execute(
                "INSERT INTO project_members SELECT key, ?, ?, ? FROM projects WHERE key = ? "
                "ON CONFLICT DO UPDATE SET role = excluded.role",
                (user_id, role.value, at, key),
            )


def _reader_added(connection: sqlite3.Connection, *, key: str, user_id: str) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO project_readers SELECT key, ? FROM projects WHERE key = ?", (user_id, key)
    )


def _readers(connection: sqlite3.Connection, *, key: str) -> list[str]:
    rows = connection.execute("SELECT user_id FROM project_readers WHERE project_key = ? ORDER BY user_id", (key,))
    return [user_id for (user_id,) in rows.fetchall()]


def _reader_forgotten(connection: sqlite3.Connection, *, user_id: str) -> None:
    connection.execute("DELETE FROM project_readers WHERE user_id = ?", (user_id,))


def _deleted(connection: sqlite3.Connection, *, key: str) -> None:
    connection.execute("DELETE FROM project_readers WHERE project_key = ?", (key,))
    connection.execute("DELETE FROM project_memories WHERE project_key = ?", (key,))
    connection.execute("DELETE FROM project_members WHERE project_key = ?", (key,))
    connection.execute("DELETE FROM projects WHERE key = ?", (key,))


def _put(connection: sqlite3.Connection, *, entries: Sequence[SharedMemory]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO project_memories SELECT ?, key, ?, ?, ? FROM projects WHERE key = ?",
        [(one.memory_id, one.author_id, one.visibility.value, one.changed_at, one.project_key) for one in entries],
    )


def _entries(connection: sqlite3.Connection, *, where: str, value: str) -> list[SharedMemory]:
    rows = connection.execute(_ENTRY + where, (value,)).fetchall()
    return [SharedMemory(one, key, author, MemoryVisibility(seen_by), at) for one, key, author, seen_by, at in rows]


def _dropped(connection: sqlite3.Connection, *, memory_ids: Collection[str]) -> None:
    connection.execute(
        "DELETE FROM project_memories WHERE memory_id IN (SELECT value FROM json_each(?))", (_json(memory_ids),)
    )


def _json(values: Collection[str]) -> str:
    return msgspec.json.encode(list(values)).decode()
