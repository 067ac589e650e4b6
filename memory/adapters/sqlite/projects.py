"""Shared projects on SQLite, in the turn log's database.

What a chat asks is read by key on the event loop: a thread switch takes longer than the read. What a user is in a
project is looked for among their memberships: a microsecond each, and others make none of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import msgspec

from memory.adapters.sqlite.database import SqliteDatabase
from memory.model.projects import (
    Invitation,
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
    "LEFT JOIN project_members ON project_key = key AND user_id = :user WHERE key = :key"
)
# CROSS: by the user's own memberships. Whoever else has projects of that id costs the user's chats nothing.
_JOINED = (
    "SELECT key, tenant, project_id, created_at, role FROM project_members "
    "CROSS JOIN projects ON key = project_key WHERE user_id = :user "
)
_INVITATION = (
    "SELECT key, tenant, project_id, created_at, user_id, role, invited_by, invited_at FROM project_invitations "
    "JOIN projects ON key = project_key WHERE "
)
_ENTRY = "SELECT memory_id, project_key, author_id, visibility, changed_at FROM project_memories WHERE "


class SqliteProjects:
    """`memory.ports.projects.Projects` in an open `SqliteDatabase`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def create(self, project: SharedProject, owner_id: str) -> bool:
        return await self._database.write(partial(_created, project=project, owner_id=owner_id))

    async def access(self, user_id: str, project_id: str) -> ProjectAccess | None:
        query = _JOINED + "AND project_id = :project_id"
        found = await self._database.read_now(partial(_accesses, query=query, user=user_id, project_id=project_id))
        return found[0] if found else None

    async def access_by_key(self, key: str, user_id: str) -> ProjectAccess | None:
        found = await self._database.read_now(partial(_accesses, query=_ACCESS, user=user_id, key=key))
        return found[0] if found else None

    async def joined(self, user_id: str) -> list[ProjectAccess]:
        query = _JOINED + "ORDER BY created_at, key"
        return await self._database.read(partial(_accesses, query=query, user=user_id))

    async def count_chosen(self, user_id: str) -> int:
        return await self._database.read(partial(_count_chosen, user_id=user_id))

    async def members(self, key: str) -> list[ProjectMember]:
        return await self._database.read(partial(_members, key=key))

    async def set_roles(self, key: str, roles: Mapping[str, ProjectRole | None], *, at: float) -> None:
        await self._database.write(partial(_roles_set, key=key, roles=roles, at=at))

    async def invite(self, invitation: Invitation) -> None:
        await self._database.write(partial(_invited, invitation=invitation))

    async def invitations(self, key: str) -> list[Invitation]:
        where = "project_key = :key ORDER BY invited_at, user_id"
        return await self._database.read(partial(_invitations, where=where, key=key))

    async def invited(self, user_id: str, *, by: str = "", limit: int) -> list[Invitation]:
        sender = "AND invited_by = :by " if by else ""
        where = f"user_id = :user {sender}ORDER BY invited_at DESC, key LIMIT :limit"
        return await self._database.read(partial(_invitations, where=where, user=user_id, by=by, limit=limit))

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

    async def forget_user(self, user_id: str) -> None:
        await self._database.write(partial(_user_forgotten, user_id=user_id))

    async def authored(self, user_id: str) -> list[SharedMemory]:
        return await self._database.read(partial(_entries, where="author_id = ? ORDER BY memory_id", value=user_id))


def _created(connection: sqlite3.Connection, *, project: SharedProject, owner_id: str) -> bool:
    inserted = connection.execute(
        "INSERT OR IGNORE INTO projects (key, tenant, project_id, created_at) VALUES (?, ?, ?, ?)",
        (project.key, project.space, project.project_id, project.created_at),
    )
    if inserted.rowcount != 1:
        return False
    _joined_by_choice(connection, project.key, owner_id, ProjectRole.OWNER, at=project.created_at)
    return True


def _joined_by_choice(connection: sqlite3.Connection, key: str, user_id: str, role: ProjectRole, *, at: float) -> None:
    _roles_set(connection, key=key, roles={user_id: role}, at=at)
    connection.execute(
        "INSERT OR IGNORE INTO project_choices SELECT ?, key FROM projects WHERE key = ?", (user_id, key)
    )


def _accesses(connection: sqlite3.Connection, *, query: str, **named: str) -> list[ProjectAccess]:
    return [
        ProjectAccess(_project(key, *rest), None if role is None else ProjectRole(role))
        for key, *rest, role in connection.execute(query, named).fetchall()
    ]


def _project(key: str, space: str, project_id: str, created_at: float) -> SharedProject:
    return SharedProject(key, "" if space == key else space, project_id, created_at)


def _count_chosen(connection: sqlite3.Connection, *, user_id: str) -> int:
    chosen = "SELECT count(*) FROM project_choices JOIN project_members USING (user_id, project_key) WHERE user_id = ?"
    return int(connection.execute(chosen, (user_id,)).fetchone()[0])


def _members(connection: sqlite3.Connection, *, key: str) -> list[ProjectMember]:
    rows = connection.execute(
        "SELECT user_id, role, joined_at FROM project_members WHERE project_key = ? ORDER BY joined_at, user_id", (key,)
    )
    return [ProjectMember(user_id, ProjectRole(role), joined_at) for user_id, role, joined_at in rows.fetchall()]


def _roles_set(connection: sqlite3.Connection, *, key: str, roles: Mapping[str, ProjectRole | None], at: float) -> None:
    for user_id, role in roles.items():
        _invitation_dropped(connection, key=key, user_id=user_id)
        if role is None:
            for table in ("project_members", "project_choices"):
                connection.execute(f"DELETE FROM {table} WHERE project_key = ? AND user_id = ?", (key, user_id))  # noqa: S608 - our own constants
        else:
            connection.execute(
                "INSERT INTO project_members SELECT key, ?, ?, ? FROM projects WHERE key = ? "
                "ON CONFLICT DO UPDATE SET role = excluded.role",
                (user_id, role.value, at, key),
            )


def _invited(connection: sqlite3.Connection, *, invitation: Invitation) -> None:
    one, key = invitation, invitation.project.key
    connection.execute(
        "INSERT OR REPLACE INTO project_invitations SELECT key, ?, ?, ?, ? FROM projects WHERE key = ?",
        (one.user_id, one.role.value, one.invited_by, one.invited_at, key),
    )


def _invitations(connection: sqlite3.Connection, *, where: str, **named: str | int) -> list[Invitation]:
    return [
        Invitation(_project(*row[:4]), user_id, ProjectRole(role), invited_by, invited_at)
        for *row, user_id, role, invited_by, invited_at in connection.execute(_INVITATION + where, named).fetchall()
    ]


def _accepted(connection: sqlite3.Connection, *, invitation: Invitation, at: float) -> None:
    _joined_by_choice(connection, invitation.project.key, invitation.user_id, invitation.role, at=at)


def _invitation_dropped(connection: sqlite3.Connection, *, key: str, user_id: str) -> None:
    connection.execute("DELETE FROM project_invitations WHERE project_key = ? AND user_id = ?", (key, user_id))


def _reader_added(connection: sqlite3.Connection, *, key: str, user_id: str) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO project_readers SELECT key, ? FROM projects WHERE key = ?", (user_id, key)
    )


def _readers(connection: sqlite3.Connection, *, key: str) -> list[str]:
    rows = connection.execute("SELECT user_id FROM project_readers WHERE project_key = ? ORDER BY user_id", (key,))
    return [user_id for (user_id,) in rows.fetchall()]


def _user_forgotten(connection: sqlite3.Connection, *, user_id: str) -> None:
    connection.execute("DELETE FROM project_readers WHERE user_id = ?", (user_id,))
    connection.execute("DELETE FROM project_invitations WHERE user_id = ?1 OR invited_by = ?1", (user_id,))
    connection.execute("DELETE FROM project_choices WHERE user_id = ?", (user_id,))


def _deleted(connection: sqlite3.Connection, *, key: str) -> None:
    for part in ("readers", "memories", "invitations", "choices", "members"):
        connection.execute(f"DELETE FROM project_{part} WHERE project_key = ?", (key,))  # noqa: S608 - our own constants
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
