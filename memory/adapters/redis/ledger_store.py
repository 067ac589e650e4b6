"""Loads and commits the ledger entry of one user, and frees the locks of the dead. The rules: `ledger_values`."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from memory.adapters.redis import ledger_values, log_keys
from memory.adapters.redis.ledger_values import ErasedUser, LedgerEntry
from memory.adapters.redis.log_client import Command, LogClient, Reply, to_its_end
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_store import COMMIT_IF_UNCHANGED, COMMIT_TRIES_MAX, PAUSE_SECONDS_MAX
from memory.adapters.redis.user_index import UserIndex
from memory.errors import Unavailable
from memory.model.identity import PROJECT_OWNER_PREFIX

STALE_LOCKS_MAX = 1_000  # freed in one call of `recover`; the rest in the next
REMOVE_IF_UNCHANGED = """
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '-1') == tonumber(ARGV[2]) then
  return redis.call('ZREM', KEYS[1], ARGV[1])
end
return 0
"""
# KEYS: the ledger, the queue, the user's id, then keys of which any needs it. Nothing was ever written for the user.
FORGET_UNKNOWN = """
if redis.call('HEXISTS', KEYS[1], 'l') == 1 or (redis.call('HGET', KEYS[2], 'q') or '') ~= '' then return 0 end
if redis.call('EXISTS', unpack(KEYS, 4)) > 0 then return 0 end
return redis.call('DEL', KEYS[3])
"""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LedgerRead:
    """What a rule decides on."""

    entry: LedgerEntry
    erased: ErasedUser | None
    replies: Sequence[Reply] = ()

    @property
    def is_unknown(self) -> bool:
        """Nothing was ever written for the user, in this life."""
        return self.entry == first_entry(self.erased)


@dataclass(frozen=True, slots=True)
class LedgerPlan(Generic[Result]):
    """What it decided: the entry to write, or None, with commands on other keys of the user, and the result.

    `marks`: in indexes of other hash tags, made before the commit and again after it.
    """

    result: Result
    entry: LedgerEntry | None = None
    commands: Sequence[Command] = ()
    marks: Sequence[Command] = ()


class LedgerStore:
    """The ledger entries of all users."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._stale = UserIndex(client, log_keys.STALE_PROFILES)

    async def read(self, user_id: str, *, reading: Sequence[Command] = ()) -> LedgerRead:
        _, read = await self._read(user_id, reading)
        return read

    async def change(
        self, user_id: str, rule: Callable[[LedgerRead], LedgerPlan[Result]], *, reading: Sequence[Command] = ()
    ) -> Result:
        """Apply the rule as often as somebody else is faster. Runs to its end if the caller is cancelled."""
        for _ in range(COMMIT_TRIES_MAX):
            version, read = await self._read(user_id, reading)
            plan = rule(read)
            if plan.entry is None and not plan.commands:
                return plan.result
            if await to_its_end(self._commit(user_id, version, read, plan)):
                return plan.result
            await asyncio.sleep(secrets.randbelow(1000) / 1000 * PAUSE_SECONDS_MAX)
        raise Unavailable("turn_log", f"others changed this user's ledger {COMMIT_TRIES_MAX} times meanwhile")

    async def forget_unknown(self, user_id: str) -> None:
        """The entry of a free lock was deleted, for it says no more than none would. So is the id if not needed."""
        keys = UserKeys(user_id)
        needing = [keys.turns, keys.profiles, keys.removed_words, *keys.of_summaries]
        await self._client.run(FORGET_UNKNOWN, [keys.ledger, keys.queue, keys.user, *needing], [])

    async def note_lock(self, user_id: str, *, expires_at: float) -> None:
        """Before a lock is taken, so that whoever looks for expired ones finds it."""
        await self._client.call("ZADD", log_keys.LOCKED_USERS, expires_at, UserKeys(user_id).digest)

    async def forget_lock(self, user_id: str, *, expires_at: float) -> None:
        """After it was released. A later lock of the user stays noted."""
        await self._client.run(
            REMOVE_IF_UNCHANGED, [log_keys.LOCKED_USERS], [UserKeys(user_id).digest, repr(expires_at)]
        )

    async def held_locks(self) -> list[tuple[str, float]]:
        """The users whose locks are held, and until when. All that were taken before the call are among them."""
        digests = [digest.decode() for digest in await self._client.call("ZRANGE", log_keys.LOCKED_USERS, 0, -1)]
        reading: list[Command] = []
        for digest in digests:
            keys = UserKeys.of_digest(digest)
            reading += [("GET", keys.user), ("HGET", keys.ledger, "l")]
        replies = await self._client.calls(reading)
        locks = [_ENTRIES.decode(value).lock if value else None for value in replies[1::2]]
        return [
            (user.decode(), lock.expires_at)
            for user, lock in zip(replies[::2], locks, strict=True)
            if user is not None and lock is not None
        ]

    async def repair(self, user_id: str, dead_owner: str, *, now: float) -> None:
        """Free the user's lock if its holder is dead, or held it for too long."""

        def repairing(read: LedgerRead) -> LedgerPlan[None]:
            return LedgerPlan(None, ledger_values.repair(read.entry, dead_owner, now=now))

        await self.change(user_id, repairing)

    async def repair_expired(self, *, now: float) -> None:
        """Free all locks that were held for too long. Costs one round trip where there are none."""
        found = await self._client.run(
            "return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])",
            [log_keys.LOCKED_USERS],
            [repr(now), STALE_LOCKS_MAX],
        )
        users = await self._client.calls([("GET", UserKeys.of_digest(one.decode()).user) for one in found[::2]])
        for digest, noted, user in zip(found[::2], found[1::2], users, strict=True):
            lock = None
            if user is not None:  # otherwise the user was erased
                await self.repair(user.decode(), "", now=now)
                lock = (await self.read(user.decode())).entry.lock
            if lock is None:
                words = [digest, repr(float(noted))]
                await self._client.run(REMOVE_IF_UNCHANGED, [log_keys.LOCKED_USERS], words)
            else:  # it was renewed: look again when it ends
                await self._client.call("ZADD", log_keys.LOCKED_USERS, lock.expires_at, digest)

    async def _read(self, user_id: str, reading: Sequence[Command]) -> tuple[bytes, LedgerRead]:
        keys = UserKeys(user_id)
        (version, stored), erasure, *replies = await self._client.calls([*read_commands(keys), *reading])
        return version or b"", read_of(stored, erasure, replies)

    async def _commit(self, user_id: str, version: bytes, read: LedgerRead, plan: LedgerPlan[Result]) -> bool:
        keys = UserKeys(user_id)
        commands: list[Command] = [("SET", keys.user, user_id)]
        if plan.entry is not None:
            commands += [("HSET", keys.ledger, "l", _ENCODER.encode(plan.entry))]
        commands += plan.commands
        words: list[str | bytes | int | float] = []
        for command in commands:
            words += [len(command), *command]
        touched = list(dict.fromkeys([keys.ledger, *(str(command[1]) for command in commands)]))
        marks = [*plan.marks, *self._staleness(user_id, read, plan)]
        await self._client.calls(marks)
        is_done = bool(await self._client.run(COMMIT_IF_UNCHANGED, touched, [version, secrets.token_hex(8), *words]))
        if is_done:
            await self._client.calls(marks)
        return is_done

    def _staleness(self, user_id: str, read: LedgerRead, plan: LedgerPlan[Result]) -> list[Command]:
        """A write has ended: the user's profiles have to be built again, and rounds of upkeep learn of a new user."""
        if plan.entry is None or not ledger_values.has_written(read.entry, plan.entry):
            return []
        if user_id.startswith(PROJECT_OWNER_PREFIX):
            return []
        digest = UserKeys(user_id).digest
        return [self._stale.marking(digest), ("SADD", log_keys.NEW_USERS, digest)]


def read_commands(keys: UserKeys) -> list[Command]:
    return [("HMGET", keys.ledger, "v", "l"), ("GET", keys.erased)]


async def read_erasure(client: LogClient, user_id: str) -> ErasedUser | None:
    """None if the user was never erased."""
    stored = await client.call("GET", UserKeys(user_id).erased)
    return _ERASURES.decode(stored) if stored else None


def read_of(stored: bytes | None, erasure: bytes | None, replies: Sequence[Reply] = ()) -> LedgerRead:
    erased = _ERASURES.decode(erasure) if erasure else None
    return LedgerRead(_ENTRIES.decode(stored) if stored else first_entry(erased), erased, replies)


def first_entry(erased: ErasedUser | None) -> LedgerEntry:
    """That of a user whom the ledger does not know: revision 0, or after an erasure a higher, even one."""
    first = 0 if erased is None else erased.revision
    return LedgerEntry(revision=first, known_since=first)


def encoded_erasure(erased: ErasedUser) -> bytes:
    return _ENCODER.encode(erased)


_ENCODER = msgspec.msgpack.Encoder()
_ENTRIES = msgspec.msgpack.Decoder(LedgerEntry)
_ERASURES = msgspec.msgpack.Decoder(ErasedUser)
