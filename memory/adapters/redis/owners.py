"""Which processes that use a Redis server are alive: each renews a key of its own that expires.

What a process may hold (open turns, leases, users' locks) is found by the set of its users, which is written before the
first of them: nothing is held by a process of which nobody could know.

The key of a living process is missing after an outage that was longer than it lives. Who was open before noticed that;
whoever opens then does not, and no server can tell: only the network of the others may have been away. But somebody is
late then, and until all who are alive have shown it, nobody is dead. Whoever ends in order says so, and is dead at
once: otherwise what it left open would wait after each restart.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import structlog

from memory.adapters.redis import log_keys, queue_values
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.errors import Unavailable

ALIVE_SECONDS = 4.0  # after its last heartbeat a process counts as dead
BEAT_SECONDS = 0.8  # between two heartbeats: four may fail
RETURN_SECONDS = 6.0  # after an outage of the server: until then all who are alive have shown it, their last call ended
SLOW_SECONDS = ALIVE_SECONDS / 2  # a heartbeat that took longer met an outage that others may not have survived yet
WITHOUT_WORDS = b"1"  # the value of a heartbeat that introduces nobody
NOTED_USERS_MAX = 50_000  # users that this process need not write down again; about 5 MB

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Others:
    """By name. `left`: they ended in order. `silent`: dead, unless the server forgot their heartbeat."""

    left: Sequence[str]
    silent: Sequence[str]
    living: Sequence[str]


class RedisOwners:
    """One instance is one owner. Open with `async with`; on exit it counts as dead at once.

    Names are never reused. A process that was suspended for so long that others took it for dead goes on, and
    writes its users down again. `introduction`: what others may read of it while it lives.
    """

    def __init__(self, client: LogClient, *, introduction: str = "") -> None:
        self.name = secrets.token_hex(16)
        self._client = client
        self._introduction = introduction
        self._noted: set[str] = set()
        self._is_open = False
        self._is_failing = False
        self._trusts_at = self._beaten_at = float("-inf")  # the loop's time; the latter of the last that succeeded
        self._beating = asyncio.TaskGroup()
        self._beat_task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._beat()
        await self._trust_unless_somebody_is_late()
        self._is_open = True
        await self._beating.__aenter__()
        self._beat_task = self._beating.create_task(self._beat_forever())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._beat_task is not None  # set on entry
        self._is_open = False
        self._beat_task.cancel()
        await self._beating.__aexit__(None, None, None)
        try:
            leaving: list[Command] = [("SMOVE", log_keys.OWNERS, log_keys.LEFT_OWNERS, self.name)]
            await self._client.calls([*leaving, ("DEL", log_keys.heartbeat(self.name))])
        except Unavailable as error_at_exit:  # the key expires by itself
            _log.warning("redis.owner_left_without_notice", reason=str(error_at_exit))

    def check_alive(self) -> None:
        """Raises `Unavailable` once this owner was left: from then on others act as if it were dead."""
        if not self._is_open:
            raise Unavailable("turn_log", "the connection is closed")

    async def note(self, user_id: str) -> None:
        """From now on this process may hold something of the user. Durable on return."""
        if user_id in self._noted:
            return
        digest = UserKeys(user_id).digest
        await self._client.calls([("SADD", log_keys.OWNERS, self.name), ("SADD", log_keys.owned(self.name), digest)])
        if len(self._noted) >= NOTED_USERS_MAX:
            self._noted.clear()
        self._noted.add(user_id)

    async def find_dead(self) -> Sequence[str]:
        """The dead that nobody forgot yet. Nobody is dead for what the server forgot while it was away itself, or did
        not hear while it was slow.
        """
        is_trusting = self._is_trusting()
        others = await self._others()
        return sorted([*others.left, *(others.silent if is_trusting and self._is_trusting() else [])])

    async def find_living(self) -> Sequence[str]:
        """The others that are alive."""
        return (await self._others()).living

    async def introductions(self) -> list[str]:
        """Of the others that are alive; "" for one that says nothing."""
        living = await self.find_living()
        texts = await self._client.calls([("GET", log_keys.heartbeat(name)) for name in living])
        return ["" if text == WITHOUT_WORDS else text.decode("utf-8", "replace") for text in texts if text is not None]

    async def is_dead(self, owner: str) -> bool:
        """Likewise."""
        if owner == self.name:
            return False
        is_trusting = self._is_trusting()
        looking: list[Command] = [("SISMEMBER", log_keys.LEFT_OWNERS, owner), ("EXISTS", log_keys.heartbeat(owner))]
        has_left, is_alive = await self._client.calls(looking)
        return bool(has_left) or (is_trusting and not is_alive and self._is_trusting())

    def _is_trusting(self) -> bool:
        """Also asked after each look: one whose answers were late may have begun before anybody knew of the outage."""
        now = asyncio.get_running_loop().time()
        is_heard = now - self._beaten_at <= BEAT_SECONDS + SLOW_SECONDS
        return is_heard and not self._is_failing and now >= self._trusts_at

    async def users_of(self, owner: str) -> Sequence[str]:
        """Without those that were erased, and for whom it was only about to hold something."""
        digests = [digest.decode() for digest in await self._client.call("SMEMBERS", log_keys.owned(owner))]
        reading: list[Command] = []
        for keys in map(UserKeys.of_digest, digests):
            reading += [("GET", keys.user), ("HGET", keys.queue, "q")]
        replies = await self._client.calls(reading)
        names = [
            queue_values.decode(queue, (user or b"").decode()).user_id
            for user, queue in zip(replies[::2], replies[1::2], strict=True)
        ]
        return sorted(name for name in names if name)

    async def forget(self, owner: str) -> None:
        """It holds nothing any more."""
        leaving: list[Command] = [("SREM", names, owner) for names in (log_keys.OWNERS, log_keys.LEFT_OWNERS)]
        await self._client.calls([("DEL", log_keys.owned(owner)), *leaving])

    async def _others(self) -> _Others:
        # In this order, as they are moved.
        reading: list[Command] = [("SMEMBERS", log_keys.OWNERS), ("SMEMBERS", log_keys.LEFT_OWNERS)]
        known, left = [{name.decode() for name in names} for names in await self._client.calls(reading)]
        names = sorted(known - left - {self.name})
        looks = await self._client.calls([("EXISTS", log_keys.heartbeat(name)) for name in names])
        living = {name for name, is_alive in zip(names, looks, strict=True) if is_alive}
        return _Others(sorted(left - {self.name}), [name for name in names if name not in living], sorted(living))

    async def _trust_unless_somebody_is_late(self) -> None:
        """Also one whose heartbeat is about to expire: it may have missed those that an outage swallowed."""
        clock = asyncio.get_running_loop().time
        names = {name.decode() for name in await self._client.call("SMEMBERS", log_keys.OWNERS)} - {self.name}
        left = await self._client.calls([("PTTL", log_keys.heartbeat(name)) for name in sorted(names)])
        is_late = any(milliseconds < (ALIVE_SECONDS - SLOW_SECONDS) * 1000 for milliseconds in left)
        if is_late or clock() - self._beaten_at > SLOW_SECONDS:
            self._trusts_at = clock() + RETURN_SECONDS

    async def _beat_forever(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            began = clock()
            try:
                await self._beat()
            except Unavailable as error:
                self._is_failing = True
                _log.warning("redis.heartbeat_failed", reason=str(error))
                continue
            if self._is_failing or clock() - began > SLOW_SECONDS:
                self._is_failing = False
                self._trusts_at = clock() + RETURN_SECONDS

    async def _beat(self) -> None:
        """Where the key had expired, others may have forgotten us and what we hold."""
        began, milliseconds = asyncio.get_running_loop().time(), int(ALIVE_SECONDS * 1000)
        words = self._introduction.encode() or WITHOUT_WORDS
        before = await self._client.call("SET", log_keys.heartbeat(self.name), words, "PX", milliseconds, "GET")
        if before is None:
            self._noted.clear()
            await self._client.call("SADD", log_keys.OWNERS, self.name)
        self._beaten_at = began
