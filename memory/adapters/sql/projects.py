"""Shared projects in SQL, in the turn log's database.

What a chat asks is read by key, on SQLite on the event loop: a thread switch takes longer than the read. What a user
is in a project is looked for among their memberships: a microsecond each, and others make none of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from memory.adapters.sql.database import OnDatabase, reads, reads_now, writes, writing
from memory.adapters.sql.statements import Connection, listed, statements
from memory.model.memories import MemoryVisibility
from memory.model.projects import Invitation, ProjectAccess, ProjectMember, ProjectRole, SharedMemory, SharedProject

SQL = statements("projects")

ENTRIES_AT_A_GLANCE = 200  # looked up in half a millisecond


def _set_roles(connection: Connection, key: str, roles: Mapping[str, ProjectRole | None], *, at: float) -> None:
    for user_id, role in roles.items():
        SQL.delete_invitation(connection, key=key, user_id=user_id)
        if role is None:
            SQL.delete_member(connection, key=key, user_id=user_id)
            SQL.delete_choice(connection, key=key, user_id=user_id)
        else:
            SQL.put_member(connection, user_id=user_id, role=role.value, at=at, key=key)


class SqlProjects(OnDatabase):
    @writes
    def create(self, connection: Connection, project: SharedProject, owner_id: str) -> bool:
        inserted = SQL.insert_project(
            connection,
            key=project.key,
            tenant=project.space,
            project_id=project.project_id,
            created_at=project.created_at,
        )
        if inserted.rowcount != 1:
            return False
        _join_by_choice(connection, project.key, owner_id, ProjectRole.OWNER, at=project.created_at)
        return True

    @reads_now
    def access(self, connection: Connection, user_id: str, project_id: str) -> ProjectAccess | None:
        return SQL.access_by_id.one(connection, _access, user=user_id, project_id=project_id)

    @reads_now
    def access_by_key(self, connection: Connection, key: str, user_id: str) -> ProjectAccess | None:
        return SQL.access_by_key.one(connection, _access, key=key, user=user_id)

    @reads
    def joined(self, connection: Connection, user_id: str) -> list[ProjectAccess]:
        return [_access(row) for row in SQL.projects_of_user(connection, user=user_id)]

    @reads
    def count_chosen(self, connection: Connection, user_id: str) -> int:
        return int(SQL.count_chosen(connection, user=user_id).fetchone()[0])

    @reads
    def members(self, connection: Connection, key: str) -> list[ProjectMember]:
        rows = SQL.members_of(connection, key=key)
        return [ProjectMember(user_id, ProjectRole(role), joined_at) for user_id, role, joined_at in rows]

    set_roles = writing(_set_roles)

    @writes
    def invite(self, connection: Connection, invitation: Invitation) -> None:
        SQL.put_invitation(
            connection,
            user_id=invitation.user_id,
            role=invitation.role.value,
            invited_by=invitation.invited_by,
            at=invitation.invited_at,
            key=invitation.project.key,
        )

    @reads
    def invitations(self, connection: Connection, key: str) -> list[Invitation]:
        return list(map(_invitation, SQL.invitations_to_project(connection, key=key)))

    @reads
    def invited(self, connection: Connection, user_id: str, *, by: str = "", limit: int) -> list[Invitation]:
        return list(map(_invitation, SQL.invitations_of_user(connection, user=user_id, by=by, limit=limit)))

    @writes
    def accept(self, connection: Connection, invitation: Invitation, *, at: float) -> None:
        _join_by_choice(connection, invitation.project.key, invitation.user_id, invitation.role, at=at)

    @writes
    def drop_invitation(self, connection: Connection, key: str, user_id: str) -> None:
        SQL.delete_invitation(connection, key=key, user_id=user_id)

    @writes
    def delete(self, connection: Connection, key: str) -> None:
        SQL.delete_readers(connection, key=key)
        SQL.delete_entries(connection, key=key)
        SQL.delete_invitations(connection, key=key)
        SQL.delete_choices(connection, key=key)
        SQL.delete_members(connection, key=key)
        SQL.delete_project(connection, key=key)

    @writes
    def put(self, connection: Connection, entries: Sequence[SharedMemory]) -> None:
        SQL.put_entry.many(connection, [{**asdict(one), "visibility": one.visibility.value} for one in entries])

    async def entries(self, memory_ids: Collection[str]) -> dict[str, SharedMemory]:
        if not memory_ids:
            return {}
        look = partial(_entries, memory_ids=memory_ids)
        is_few = len(memory_ids) <= ENTRIES_AT_A_GLANCE
        return await (self._database.read_now(look) if is_few else self._database.read(look))

    @writes
    def drop(self, connection: Connection, memory_ids: Collection[str]) -> None:
        SQL.delete_entries_by_id(connection, memory_ids=listed(memory_ids))

    @writes
    def add_reader(self, connection: Connection, key: str, user_id: str) -> None:
        SQL.insert_reader(connection, user_id=user_id, key=key)

    @reads
    def readers(self, connection: Connection, key: str) -> list[str]:
        return SQL.readers_of.column(connection, key=key)

    @writes
    def forget_user(self, connection: Connection, user_id: str) -> None:
        SQL.delete_reader(connection, user_id=user_id)
        SQL.delete_invitations_of_user(connection, user_id=user_id)
        SQL.delete_choices_of_user(connection, user_id=user_id)

    @reads
    def authored(self, connection: Connection, user_id: str) -> list[SharedMemory]:
        return [_entry(row) for row in SQL.entries_of_author(connection, author_id=user_id)]


def _join_by_choice(connection: Connection, key: str, user_id: str, role: ProjectRole, *, at: float) -> None:
    _set_roles(connection, key, {user_id: role}, at=at)
    SQL.choose_membership(connection, user_id=user_id, key=key)


def _access(row: Sequence[Any]) -> ProjectAccess:
    *project, role = row
    return ProjectAccess(_project(*project), None if role is None else ProjectRole(role))


def _project(key: str, space: str, project_id: str, created_at: float) -> SharedProject:
    return SharedProject(key, "" if space == key else space, project_id, created_at)


def _invitation(row: Sequence[Any]) -> Invitation:
    *project, user_id, role, invited_by, invited_at = row
    return Invitation(_project(*project), user_id, ProjectRole(role), invited_by, invited_at)


def _entries(connection: Connection, *, memory_ids: Collection[str]) -> dict[str, SharedMemory]:
    return {row[0]: _entry(row) for row in SQL.entries_by_id(connection, memory_ids=listed(memory_ids))}


def _entry(row: tuple[str, str, str, str, float]) -> SharedMemory:
    memory_id, key, author_id, visibility, changed_at = row
    return SharedMemory(memory_id, key, author_id, MemoryVisibility(visibility), changed_at)
