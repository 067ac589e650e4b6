"""Shared projects on Redis: all of a project under one hash tag, and sets under those of its users.

A set of a user names whatever may concern them. It is written before the project and again after it, so that nothing
is missing from it; what it names too much is left out when it is read. A project is found once its name leads to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from memory.adapters.redis import project_values
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.project_values import ProjectKeys, key_of_memory, name_keys
from memory.errors import Unavailable
from memory.model.projects import (
    Invitation,
    ProjectAccess,
    ProjectMember,
    ProjectRole,
    SharedMemory,
    SharedProject,
)

ENTRIES_PER_COMMAND = 1_000  # Lua takes about 8,000 words
NAME_TRIES_MAX = 10  # each loss means that somebody else created or deleted a project of that name

# KEYS: the project, roles, joined, choices, invitations. ARGV: time, then users with their roles; "" removes.
_SET_ROLES = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
for at = 2, #ARGV, 2 do
  redis.call('HDEL', KEYS[5], ARGV[at])
  if ARGV[at + 1] == '' then
    redis.call('HDEL', KEYS[2], ARGV[at])
    redis.call('HDEL', KEYS[3], ARGV[at])
    redis.call('SREM', KEYS[4], ARGV[at])
  else
    redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1])
    redis.call('HSETNX', KEYS[3], ARGV[at], ARGV[1])
  end
end
return 1
"""
# KEYS: the project, another key of it. ARGV: a command without its key.
_IF_EXISTS = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call(ARGV[1], KEYS[2], unpack(ARGV, 2))
return 1
"""
# KEYS: the project, roles, invitations, readers, memories, others.
_DELETE = """
local left = {redis.call('HKEYS', KEYS[2]), redis.call('HKEYS', KEYS[3]), redis.call('SMEMBERS', KEYS[4]),
  redis.call('HGETALL', KEYS[5])}
redis.call('DEL', unpack(KEYS))
return left
"""
_NAMED = "redis.call('SET', KEYS[1], ARGV[1], 'NX') return redis.call('GET', KEYS[1])"
_DELETE_IF_EQUAL = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisProjects:
    """`memory.ports.projects.Projects`."""

    def __init__(self, client: LogClient) -> None:
        self._client = client

    async def create(self, project: SharedProject, owner_id: str) -> bool:
        """A name leads to a project only after that was written, and for a moment to one that is just deleted."""
        await self._client.call("SADD", UserKeys(owner_id).projects, project.key)
        await self._client.call("SET", ProjectKeys(project.key).project, project_values.encode_project(project))
        await self._join(project.key, owner_id, ProjectRole.OWNER, at=project.created_at)
        name = name_keys(project)[0]
        for _ in range(NAME_TRIES_MAX):
            key = (await self._client.run(_NAMED, [name], [project.key])).decode()
            if key == project.key:
                return True
            if await self._client.call("EXISTS", ProjectKeys(key).project):
                await self.delete(project.key)
                return False
            await self._client.run(_DELETE_IF_EQUAL, [name], [key])
        raise Unavailable("turn_log", f"others changed the project of that name {NAME_TRIES_MAX} times meanwhile")

    async def access(self, user_id: str, project_id: str) -> ProjectAccess | None:
        joined, _ = await self._of_user(user_id)
        return next((one for one in joined if one.project.project_id == project_id), None)

    async def access_by_key(self, key: str, user_id: str) -> ProjectAccess | None:
        (access,) = await self._accesses([key], user_id)
        return access

    async def joined(self, user_id: str) -> list[ProjectAccess]:
        joined, _ = await self._of_user(user_id)
        return sorted(joined, key=lambda one: (one.project.created_at, one.project.key))

    async def count_chosen(self, user_id: str) -> int:
        keys = [one.project.key for one in await self.joined(user_id)]
        return sum(await self._client.calls([("SISMEMBER", ProjectKeys(key).choices, user_id) for key in keys]))

    async def members(self, key: str) -> list[ProjectMember]:
        keys = ProjectKeys(key)
        roles, joined = await self._client.calls([("HGETALL", keys.roles), ("HGETALL", keys.joined)])
        members = [
            ProjectMember(user.decode(), ProjectRole(role.decode()), float(joined[user]))
            for user, role in roles.items()
            if user in joined  # the two are read one after the other
        ]
        return sorted(members, key=lambda one: (one.joined_at, one.user_id))

    async def set_roles(self, key: str, roles: Mapping[str, ProjectRole | None], *, at: float) -> None:
        keys = ProjectKeys(key)
        words: list[str | bytes | int | float] = [repr(at)]
        for user_id, role in roles.items():
            words += [user_id, "" if role is None else role.value]
        joining = [UserKeys(user_id).projects for user_id, role in roles.items() if role is not None]
        leaving = [UserKeys(user_id).projects for user_id, role in roles.items() if role is None]
        await self._client.calls([("SADD", projects, key) for projects in joining])
        await self._client.calls([("SREM", UserKeys(user_id).invitations, key) for user_id in roles])
        parts = [keys.project, keys.roles, keys.joined, keys.choices, keys.invitations]
        if await self._client.run(_SET_ROLES, parts, words):
            await self._client.calls([("SADD", projects, key) for projects in joining])
            await self._client.calls([("SREM", projects, key) for projects in leaving])
        else:
            await self._client.calls([("SREM", projects, key) for projects in (*joining, *leaving)])

    async def _join(self, key: str, user_id: str, role: ProjectRole, *, at: float) -> None:
        """By choice. If it is cut short in between, the membership does not count against the user's limit."""
        keys = ProjectKeys(key)
        await self.set_roles(key, {user_id: role}, at=at)
        await self._client.run(_IF_EXISTS, [keys.project, keys.choices], ["SADD", user_id])

    async def invite(self, invitation: Invitation) -> None:
        one, keys = invitation, ProjectKeys(invitation.project.key)
        await self._client.call("SADD", UserKeys(one.user_id).invitations, one.project.key)
        await self._client.call("SADD", UserKeys(one.invited_by).sent_invitations, one.project.key)
        words: list[str | bytes | int | float] = ["HSET", one.user_id, project_values.encode_invitation(one)]
        await self._client.run(_IF_EXISTS, [keys.project, keys.invitations], words)

    async def invitations(self, key: str) -> list[Invitation]:
        keys = ProjectKeys(key)
        project, stored = await self._client.calls([("GET", keys.project), ("HGETALL", keys.invitations)])
        found = [_invitation(project, user.decode(), one) for user, one in stored.items()]
        return sorted(filter(None, found), key=lambda one: (one.invited_at, one.user_id))

    async def invited(self, user_id: str, *, by: str = "", limit: int) -> list[Invitation]:
        reading: list[Command] = []
        for key in map(ProjectKeys, await self._members_of(UserKeys(user_id).invitations)):
            reading += [("GET", key.project), ("HGET", key.invitations, user_id)]
        replies = await self._client.calls(reading)
        found = [_invitation(project, user_id, one) for project, one in zip(replies[::2], replies[1::2], strict=True)]
        own = [one for one in found if one is not None and by in ("", one.invited_by)]
        return sorted(own, key=lambda one: (-one.invited_at, one.project.key))[:limit]

    async def accept(self, invitation: Invitation, *, at: float) -> None:
        await self._join(invitation.project.key, invitation.user_id, invitation.role, at=at)

    async def drop_invitation(self, key: str, user_id: str) -> None:
        await self._client.call("HDEL", ProjectKeys(key).invitations, user_id)
        await self._client.call("SREM", UserKeys(user_id).invitations, key)

    async def delete(self, key: str) -> None:
        keys = ProjectKeys(key)
        stored = await self._client.call("GET", keys.project)
        parts = [keys.project, keys.roles, keys.invitations, keys.readers, keys.memories, keys.joined, keys.choices]
        members, invited, readers, memories = await self._client.run(_DELETE, parts, [])
        if stored is not None:
            for name in name_keys(project_values.decode_project(stored)):
                await self._client.run(_DELETE_IF_EQUAL, [name], [key])
        entries = [
            project_values.decode_entry(*_text(pair)) for pair in zip(memories[::2], memories[1::2], strict=True)
        ]
        await self._client.calls([("SREM", UserKeys(user.decode()).projects, key) for user in members])
        await self._client.calls([("SREM", UserKeys(user.decode()).invitations, key) for user in invited])
        await self._client.calls([("SREM", UserKeys(user.decode()).read_projects, key) for user in readers])
        await self._client.calls(_authors("SREM", entries))

    async def put(self, entries: Sequence[SharedMemory]) -> None:
        for start in range(0, len(entries), ENTRIES_PER_COMMAND):
            await self._put(entries[start : start + ENTRIES_PER_COMMAND])

    async def entries(self, memory_ids: Collection[str]) -> dict[str, SharedMemory]:
        by_key = _by_project(memory_ids)
        values = await self._client.calls([("HMGET", ProjectKeys(key).memories, *own) for key, own in by_key.items()])
        found: dict[str, SharedMemory] = {}
        for own, stored in zip(by_key.values(), values, strict=True):
            for memory_id, value in zip(own, stored, strict=True):
                if value is not None:
                    found[memory_id] = project_values.decode_entry(memory_id, value)
        return found

    async def drop(self, memory_ids: Collection[str]) -> None:
        entries = await self.entries(memory_ids)
        by_key = _by_project(entries)
        await self._client.calls([("HDEL", ProjectKeys(key).memories, *own) for key, own in by_key.items()])
        await self._client.calls(_authors("SREM", entries.values()))

    async def add_reader(self, key: str, user_id: str) -> None:
        keys, own = ProjectKeys(key), UserKeys(user_id).read_projects
        await self._client.call("SADD", own, key)
        exists = await self._client.run(_IF_EXISTS, [keys.project, keys.readers], ["SADD", user_id])
        await self._client.call("SADD" if exists else "SREM", own, key)

    async def readers(self, key: str) -> list[str]:
        return await self._members_of(ProjectKeys(key).readers)

    async def forget_user(self, user_id: str) -> None:
        """Also deletes projects of theirs whose creation was cut short, which nothing else finds."""
        _, cut_short = await self._of_user(user_id)
        for key in cut_short:
            await self.delete(key)
        for key in await self._members_of(UserKeys(user_id).invitations):
            await self.drop_invitation(key, user_id)
        for key in await self._members_of(UserKeys(user_id).sent_invitations):
            for one in await self.invitations(key):
                if one.invited_by == user_id:
                    await self.drop_invitation(key, one.user_id)
            await self._client.call("SREM", UserKeys(user_id).sent_invitations, key)
        own = UserKeys(user_id).read_projects
        keys = await self._members_of(own)
        await self._client.calls([("SREM", ProjectKeys(key).readers, user_id) for key in keys])
        await self._client.calls([("SREM", own, key) for key in keys])

    async def authored(self, user_id: str) -> list[SharedMemory]:
        named = await self.entries(await self._members_of(UserKeys(user_id).authored))
        return sorted((one for one in named.values() if one.author_id == user_id), key=lambda one: one.memory_id)

    async def _of_user(self, user_id: str) -> tuple[list[ProjectAccess], list[str]]:
        """What they joined, and the keys of projects to which no name leads."""
        keys = await self._members_of(UserKeys(user_id).projects)
        found = [one for one in await self._accesses(keys, user_id) if one is not None]
        projects = [one.project for one in found]
        names = [(one.key.encode(), name) for one in projects for name in name_keys(one)]
        named = await self._client.calls([("GET", name) for _, name in names])
        whole = {key for (key, _), found in zip(names, named, strict=True) if found == key}
        is_named = [one.key.encode() in whole for one in projects]
        joined = [one for one, is_whole in zip(found, is_named, strict=True) if is_whole and one.role is not None]
        return joined, [one.key for one, is_whole in zip(projects, is_named, strict=True) if not is_whole]

    async def _accesses(self, keys: Sequence[str], user_id: str) -> list[ProjectAccess | None]:
        reading: list[Command] = []
        for key in keys:
            reading += [("GET", ProjectKeys(key).project), ("HGET", ProjectKeys(key).roles, user_id)]
        replies = await self._client.calls(reading)
        return [_access(stored, role) for stored, role in zip(replies[::2], replies[1::2], strict=True)]

    async def _members_of(self, key: str) -> list[str]:
        """Of a set, in order."""
        return sorted(member.decode() for member in await self._client.call("SMEMBERS", key))

    async def _put(self, entries: Sequence[SharedMemory]) -> None:
        await self._client.calls(_authors("SADD", entries))
        by_id = {entry.memory_id: entry for entry in entries}
        refused: set[str] = set()
        for key, own in _by_project(by_id).items():
            keys = ProjectKeys(key)
            words: list[str | bytes | int | float] = ["HSET"]
            for memory_id in own:
                assert by_id[memory_id].project_key == key, "the id of a shared memory begins with its project's key"
                words += [memory_id, project_values.encode_entry(by_id[memory_id])]
            if not await self._client.run(_IF_EXISTS, [keys.project, keys.memories], words):
                refused.update(own)
        await self._client.calls(_authors("SREM", [by_id[memory_id] for memory_id in refused]))
        await self._client.calls(_authors("SADD", [entry for entry in entries if entry.memory_id not in refused]))


def _access(stored: bytes | None, role: bytes | None) -> ProjectAccess | None:
    if stored is None:
        return None
    return ProjectAccess(project_values.decode_project(stored), None if role is None else ProjectRole(role.decode()))


def _invitation(project: bytes | None, user_id: str, stored: bytes | None) -> Invitation | None:
    if project is None or stored is None:
        return None
    return project_values.decode_invitation(project_values.decode_project(project), user_id, stored)


def _by_project(memory_ids: Iterable[str]) -> dict[str, list[str]]:
    by_key: dict[str, list[str]] = {}
    for memory_id in memory_ids:
        by_key.setdefault(key_of_memory(memory_id), []).append(memory_id)
    return by_key


def _authors(command: str, entries: Iterable[SharedMemory]) -> list[Command]:
    """In or out of the sets of what their authors wrote."""
    by_author: dict[str, list[str]] = {}
    for entry in entries:
        by_author.setdefault(entry.author_id, []).append(entry.memory_id)
    return [(command, UserKeys(author).authored, *ids) for author, ids in by_author.items()]


def _text(pair: tuple[bytes, bytes]) -> tuple[str, bytes]:
    memory_id, stored = pair
    return memory_id.decode(), stored
