"""Profiles on Redis, in one hash per user, which changes only with the version of the user's ledger.

Whoever ends a write marks the user in an index (`ledger_store`). Whether somebody in it is out of date is decided by
the revision that was built. Where no profiles are built, users are marked all the same, and nobody is named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from memory.adapters.redis import ledger_values, log_keys, profile_values
from memory.adapters.redis.ledger_store import LedgerPlan, LedgerRead, LedgerStore, read_commands, read_of
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.profile_values import BUILT, StoredProfile, StoredProfiles
from memory.adapters.redis.user_index import Look, Marked, UserIndex
from memory.model import Profile, ProfileLine, ProfileProse
from memory.model.identity import PROJECT_OWNER_PREFIX

Result = TypeVar("Result")


class RedisProfiles:
    """`memory.ports.Profiles`."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._ledger = LedgerStore(client)
        self._stale = UserIndex(client, log_keys.STALE_PROFILES)
        self._unwritten = UserIndex(client, log_keys.UNWRITTEN_PROFILES)

    async def get(self, user_id: str, project_ids: Collection[str]) -> dict[str, Profile]:
        if not project_ids:
            return {}
        fields = [profile_values.field_of(project_id) for project_id in project_ids]
        values = await self._client.call("HMGET", UserKeys(user_id).profiles, *fields)
        found = [profile_values.decode(value).profile for value in values if value is not None]
        return {profile.project_id: profile for profile in found}

    async def all(self, user_id: str) -> list[Profile]:
        stored = profile_values.decode_all(await self._client.call("HGETALL", UserKeys(user_id).profiles))
        return [one.profile for _, one in sorted(stored.profiles.items())]

    async def put(self, user_id: str, lines: Mapping[str, Sequence[ProfileLine]], *, revision: int, now: float) -> bool:
        def putting(read: LedgerRead, stored: StoredProfiles) -> LedgerPlan[bool]:
            if read.entry.revision != revision:
                return LedgerPlan(False)
            changed = profile_values.with_lines(stored, user_id, lines, now=now)
            return self._storing(True, user_id, changed, _building(user_id, read))

        return await self._change(user_id, putting)

    async def unwritten(self, *, settled_before: float, limit: int) -> list[Profile]:
        return await self._unwritten.search(self._look_at_unwritten, since=-settled_before, limit=limit)

    async def put_prose(self, before: Profile, prose: ProfileProse | None) -> bool:
        def putting(_: LedgerRead, stored: StoredProfiles) -> LedgerPlan[bool]:
            written = profile_values.with_prose(stored.profiles.get(before.project_id), before.lines, prose)
            return LedgerPlan(False) if written is None else self._storing(True, before.user_id, [written])

        return await self._change(before.user_id, putting)

    async def set_own(
        self,
        user_id: str,
        project_id: str,
        *,
        pinned: Sequence[ProfileLine] | None = None,
        is_enabled: bool | None = None,
        now: float,
    ) -> None:
        def setting(_: LedgerRead, stored: StoredProfiles) -> LedgerPlan[None]:
            before = stored.profile(user_id, project_id)
            changed = profile_values.with_own(before, pinned=pinned, is_enabled=is_enabled, now=now)
            return self._storing(None, user_id, changed)

        await self._change(user_id, setting)

    async def drop(self, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        def dropping(_: LedgerRead, stored: StoredProfiles) -> LedgerPlan[None]:
            changed = profile_values.without_memories(stored, memory_ids, now=now)
            return self._storing(None, user_id, changed)

        await self._change(user_id, dropping)

    async def erase(self, user_id: str, project_id: str = "") -> None:
        await self._change(user_id, partial(_erase, user_id=user_id, project_id=project_id))

    async def stale(self, *, limit: int) -> list[str]:
        if await self._client.call("EXISTS", log_keys.NO_PROFILES):
            return []
        return await self._stale.search(self._look_at_stale, limit=limit)

    async def is_stale(self, user_id: str) -> bool:
        (_, entry), erasure, built = await self._client.calls(_staleness_of(UserKeys(user_id)))
        return _is_stale(user_id, read_of(entry, erasure), built)

    async def follow(self, *, is_enabled: bool) -> None:
        await self._client.call(*(("DEL", log_keys.NO_PROFILES) if is_enabled else ("SET", log_keys.NO_PROFILES, 1)))

    async def _change(self, user_id: str, rule: Callable[[LedgerRead, StoredProfiles], LedgerPlan[Result]]) -> Result:
        def ruled(read: LedgerRead) -> LedgerPlan[Result]:
            return rule(read, profile_values.decode_all(read.replies[0]))

        return await self._ledger.change(user_id, ruled, reading=[("HGETALL", UserKeys(user_id).profiles)])

    def _storing(
        self, result: Result, user_id: str, changed: Iterable[StoredProfile], also: Sequence[Command] = ()
    ) -> LedgerPlan[Result]:
        keys, writing, marks = UserKeys(user_id), list(also), list[Command]()
        for one in changed:
            field = profile_values.field_of(one.profile.project_id)
            writing.append(("HSET", keys.profiles, field, profile_values.encode(one)))
            if one.waits_for_prose:
                marks.append(self._unwritten.marking(f"{keys.digest}:{field}", -one.profile.updated_at))
        return LedgerPlan(result, commands=writing, marks=marks)

    async def _look_at_unwritten(self, page: Sequence[Marked]) -> list[Look[Profile]]:
        """The newest come first: the place is the negative time."""
        names = [marked.member.split(":") for marked in page]
        values = await self._client.calls(
            [("HGET", UserKeys.of_digest(digest).profiles, field) for digest, field in names]
        )
        found = [None if value is None else profile_values.decode(value) for value in values]
        return [
            Look(None, None) if one is None or not one.waits_for_prose else Look(one.profile, -one.profile.updated_at)
            for one in found
        ]

    async def _look_at_stale(self, page: Sequence[Marked]) -> list[Look[str]]:
        """Who is being written for stays where they are: the end of that write marked them already."""
        commands: list[Command] = []
        for marked in page:
            keys = UserKeys.of_digest(marked.member)
            commands += [("GET", keys.user), *_staleness_of(keys)]
        replies = await self._client.calls(commands)
        looks: list[Look[str]] = []
        for place, marked in enumerate(page):
            user, (_, entry), erasure, built = replies[4 * place : 4 * place + 4]
            read, user_id = read_of(entry, erasure), (user or b"").decode()
            is_stale = _is_stale(user_id, read, built)
            stays = is_stale or read.entry.lock is not None
            looks.append(Look(user_id if is_stale else None, marked.place if stays else None))
        return looks


def _erase(read: LedgerRead, stored: StoredProfiles, *, user_id: str, project_id: str) -> LedgerPlan[None]:
    keys = UserKeys(user_id)
    if project_id:
        return LedgerPlan(None, commands=[("HDEL", keys.profiles, profile_values.field_of(project_id))])
    fields = [profile_values.field_of(project) for project in stored.profiles]
    deleting: list[Command] = [("HDEL", keys.profiles, *fields)] if fields else []
    return LedgerPlan(None, commands=[*deleting, *_building(user_id, read)])


def _building(user_id: str, read: LedgerRead) -> list[Command]:
    """The profiles are as the last settled revision says; that of an unknown user says nothing."""
    return [] if read.is_unknown else [("HSET", UserKeys(user_id).profiles, BUILT, ledger_values.settled(read.entry))]


def _staleness_of(keys: UserKeys) -> list[Command]:
    return [*read_commands(keys), ("HGET", keys.profiles, BUILT)]


def _is_stale(user_id: str, read: LedgerRead, built: bytes | None) -> bool:
    """Not somebody for whom nothing was ever written. Shared projects have no profiles."""
    if user_id.startswith(PROJECT_OWNER_PREFIX) or read.is_unknown:
        return False
    return ledger_values.settled(read.entry) > int(built or b"0")
