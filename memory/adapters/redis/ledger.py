"""Locks and revisions per user on Redis: a sequence lock visible to every process of the deployment.

This module only turns calls into loads, rules (`ledger_values`) and commits.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from memory.adapters.redis import ledger_values
from memory.adapters.redis.ledger_store import LedgerPlan, LedgerRead, LedgerStore, encoded_erasure, first_entry
from memory.adapters.redis.ledger_values import UserLock
from memory.adapters.redis.log_client import CALL_SECONDS_MAX, Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.queue_store import QueueStore
from memory.adapters.redis.recorded_messages import RedisRecordedMessages
from memory.adapters.redis.write_barrier import BARRIER_END, BarrierLook, is_closed
from memory.errors import Conflict, Unavailable
from memory.ports import Clock, LedgerWrite, Revision

LOCK_SECONDS = 30.0  # since the last `renew`, which comes right before each write
SENT_WITHIN_SHARE = 0.6  # of a term: by then the rows are sent, for the store may take long
assert 2 * CALL_SECONDS_MAX + 5.0 <= SENT_WITHIN_SHARE * LOCK_SECONDS <= LOCK_SECONDS - 10.0
WAIT_SECONDS_MAX = 5.0  # for a lock held by somebody else
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.002, 0.05  # between two checks of a held lock
CHANGES_MAX = 1_000  # ids per user: a reader that is further behind loads everything
IDS_PER_COMMAND = 1_000  # Lua takes about 8,000 words
REPEAT_ERASURE = "the user's lock was lost while it was held: the erasure has to be repeated"


class RedisUserLedger:
    """`memory.ports.UserLedger`. `owners`: this process, as the turn log knows it."""

    def __init__(
        self,
        client: LogClient,
        owners: RedisOwners,
        *,
        clock: Clock,
        lock_seconds: float = LOCK_SECONDS,
        wait_seconds: float = WAIT_SECONDS_MAX,
    ) -> None:
        self._client = client
        self._store = LedgerStore(client)
        self._barriers = BarrierLook(client)
        self._owners = owners
        self._clock = clock
        self._lock_seconds = lock_seconds
        self._wait_seconds = wait_seconds

    def write(self, user_id: str) -> AbstractAsyncContextManager[LedgerWrite]:
        """As the port says. Raises `Conflict` on exit if the lock was lost meanwhile, and makes all readers reload."""
        return self._held(user_id)

    async def revision(self, user_id: str) -> Revision:
        return Revision((await self._store.read(user_id)).entry.revision)

    async def changed_since(self, user_id: str, number: int) -> frozenset[str] | None:
        """The entry is read before the changes and again after them: both must be of one revision."""
        reading = ("ZRANGE", UserKeys(user_id).changes, f"({number}", "+inf", "BYSCORE", "WITHSCORES")
        before = await self._store.read(user_id)
        after = await self._store.read(user_id, reading=[reading])
        while before.entry.known_since != after.entry.known_since:
            before, after = after, await self._store.read(user_id, reading=[reading])
        if not ledger_values.is_known(after.entry, number):
            return None
        ended = (one for one, revision in after.replies[0] if revision <= after.entry.revision)  # not announced ones
        return frozenset(memory_id.decode("utf-8", "surrogatepass") for memory_id in ended)

    async def life(self, user_id: str) -> int:
        erased = (await self._store.read(user_id)).erased
        return 0 if erased is None else erased.times

    @asynccontextmanager
    async def _held(self, user_id: str) -> AsyncIterator[LedgerWrite]:
        lock = UserLock(secrets.token_hex(16), self._owners.name, self._clock() + self._lock_seconds)
        await self._acquire(user_id, lock)
        held = HeldUserLock(self._client, user_id, lock, self._clock, self._lock_seconds)
        try:
            yield held
        finally:  # also after an error: part of it may have been written
            self._owners.check_alive()
            is_ours = held.is_ended or await self._end(user_id, held, lock)
            await self._store.forget_lock(user_id, expires_at=lock.expires_at)
            if not is_ours:  # raised after the commit: readers have to notice in any case
                raise Conflict("the user's lock was lost while it was held: it took too long")

    async def _acquire(self, user_id: str, lock: UserLock) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._wait_seconds
        pause = PAUSE_SECONDS_MIN
        await self._owners.note(user_id)
        try:
            while not await self._is_acquired(user_id, lock):
                if loop.time() >= deadline:
                    raise Unavailable("turn_log", f"the user's lock was held for {self._wait_seconds:.0f} s")
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
        except (asyncio.CancelledError, Unavailable):  # we may hold the lock by now without knowing
            with suppress(Unavailable):  # then it ends by itself
                await self._take_back(user_id, lock.token)
            raise

    async def _is_acquired(self, user_id: str, mine: UserLock) -> bool:
        read = await self._store.read(user_id, reading=[BARRIER_END])
        stale = read.entry.lock
        if is_closed(read.replies[0], now=self._clock()):  # otherwise those who wait would keep it from closing
            return False
        if stale is not None and stale.expires_at > self._clock() and not await self._owners.is_dead(stale.owner):
            return False
        await self._store.note_lock(user_id, expires_at=mine.expires_at)

        def taking(read: LedgerRead) -> LedgerPlan[bool]:
            taken = ledger_values.take(read.entry, mine, stale=stale)
            return LedgerPlan(taken is not None, taken)

        if not await self._store.change(user_id, taking):
            return False
        if is_closed(await self._barriers.note_writer(user_id), now=self._clock()):
            await self._take_back(user_id, mine.token)
            return False
        return True

    async def _end(self, user_id: str, held: HeldUserLock, lock: UserLock) -> bool:
        await self._barriers.note_writer(user_id)
        if held.is_touched:
            return await self._let_go(user_id, lock.token, held.touched)
        return await self._take_back(user_id, lock.token, is_lost_noted=True)

    async def _let_go(self, user_id: str, token: str, touched: Collection[str]) -> bool:
        letting_go, reading = _letting_go(user_id, token, touched)
        return await self._store.change(user_id, letting_go, reading=reading)

    async def _take_back(self, user_id: str, token: str, *, is_lost_noted: bool = False) -> bool:
        """Release a lock under which nothing was touched: the revision is again what it was. False if it was lost.

        `is_lost_noted`: in that case all readers have to load everything. Otherwise the caller left before it got the
        lock, and cannot have lost it.
        """

        def taking_back(read: LedgerRead) -> LedgerPlan[tuple[bool, bool]]:
            is_ours = read.entry.lock is not None and read.entry.lock.token == token
            if read.is_unknown or not (is_ours or is_lost_noted):
                return LedgerPlan((is_ours, False))
            entry, _ = ledger_values.let_go(read.entry, token, is_touched=False)
            if entry != first_entry(read.erased):
                return LedgerPlan((is_ours, False), entry)
            return LedgerPlan((is_ours, True), commands=[("HDEL", UserKeys(user_id).ledger, "l")])

        is_ours, is_unknown = await self._store.change(user_id, taking_back)
        if is_unknown:
            await self._store.forget_unknown(user_id)
        return is_ours


def _letting_go(
    user_id: str, token: str, touched: Collection[str]
) -> tuple[Callable[[LedgerRead], LedgerPlan[bool]], Sequence[Command]]:
    """Makes the revision even and records the changes; the oldest are deleted beyond the limit. Also what it reads."""
    keys, ids = UserKeys(user_id), sorted(touched)
    place = CHANGES_MAX - len(ids)  # from the newest: the first for which there is no room

    def letting_go(read: LedgerRead) -> LedgerPlan[bool]:
        if read.is_unknown:  # the user was erased meanwhile: readers notice that by the epoch
            return LedgerPlan(False)
        entry, is_ours = ledger_values.let_go(read.entry, token, is_touched=True)
        if not is_ours or not ids:
            return LedgerPlan(is_ours, entry)
        surplus = _surplus(read, entry.revision, place)
        added = [*_additions(keys.changes, entry.revision, ids)]
        if surplus is None:
            return LedgerPlan(True, entry, added)
        removing: Command = ("ZREMRANGEBYSCORE", keys.changes, "-inf", surplus)
        return LedgerPlan(True, ledger_values.trimmed(entry, surplus), [*added, removing])

    reading: list[Command] = [("EVAL", _SCORE_AT, 1, keys.changes, max(place, 0))]
    return letting_go, reading if ids else ()


_SCORE_AT = "return redis.call('ZREVRANGE', KEYS[1], ARGV[1], ARGV[1], 'WITHSCORES')[2]"


def _surplus(read: LedgerRead, revision: int, place: int) -> int | None:
    """The revision up to which changes have to be deleted; None if there is room for all."""
    if place < 0:
        return revision
    (score,) = read.replies
    return None if score is None else int(float(score))


def _additions(key: str, revision: int, ids: Sequence[str]) -> list[Command]:
    """Ids beyond the limit need not be written: they are among those that are deleted."""
    additions: list[Command] = []
    for start in range(0, min(len(ids), CHANGES_MAX), IDS_PER_COMMAND):
        words: list[str | bytes | int | float] = []
        for memory_id in ids[start : start + IDS_PER_COMMAND]:
            words += [revision, memory_id.encode("utf-8", "surrogatepass")]
        additions.append(("ZADD", key, *words))
    return additions


class HeldUserLock:
    """`memory.ports.LedgerWrite`."""

    def __init__(self, client: LogClient, user_id: str, lock: UserLock, clock: Clock, lock_seconds: float) -> None:
        self.touched: set[str] = set()
        self.announced: set[str] = set()
        self.is_touched = False
        self.is_ended = False
        self._client = client
        self._store = LedgerStore(client)
        self._user_id = user_id
        self._token = lock.token
        self._clock = clock
        self._lock_seconds = lock_seconds
        self._renewed_at = clock()  # or a little later: `check_term` requires a renewal before it anyway

    def touch(self, memory_ids: Collection[str]) -> None:
        self.is_touched = True
        self.touched.update(memory_ids)

    async def renew(self) -> None:
        began_at = self._clock()
        await self._renew(began_at, [])
        self._renewed_at = began_at

    def check_term(self) -> None:
        if self._clock() - self._renewed_at > self._lock_seconds * SENT_WITHIN_SHARE:
            raise Conflict("the user's lock is about to be lost, or is: nothing more may be written under it")

    async def forgotten(self, memory_ids: Collection[str]) -> frozenset[str]:
        asked = list(memory_ids)
        key = UserKeys(self._user_id).forgotten
        replies = await self._client.calls([("SISMEMBER", key, _bytes_of(memory_id)) for memory_id in asked])
        return frozenset(memory_id for memory_id, is_known in zip(asked, replies, strict=True) if is_known)

    async def forget(self, memory_ids: Collection[str], *, raw_ids: Collection[str] = ()) -> None:
        if memory_ids:
            self.touch(memory_ids)
        ids = [_bytes_of(memory_id) for memory_id in (*memory_ids, *raw_ids)]
        key, began_at = UserKeys(self._user_id).forgotten, self._clock()
        parts = [ids[start : start + IDS_PER_COMMAND] for start in range(0, len(ids), IDS_PER_COMMAND)]
        await self._renew(began_at, [("SADD", key, *part) for part in parts])
        self._renewed_at = began_at

    async def end_life(self) -> None:
        """Also deletes what was recorded since the record was erased: it began before this life ended."""
        now, keys = self._clock(), UserKeys(self._user_id)
        await self._refuse_earlier_turns(now)
        messages = RedisRecordedMessages(self._client, QueueStore(self._client), clock=self._clock)
        await messages.erase(self._user_id, before=math.inf)

        def ending(read: LedgerRead) -> LedgerPlan[bool]:
            if ledger_values.renew(read.entry, self._token, until=now) is None:
                return LedgerPlan(False)
            erased = ledger_values.erased(read.entry, read.erased, now=now)
            writing: list[Command] = [("SET", keys.erased, encoded_erasure(erased)), ("HDEL", keys.ledger, "l")]
            deleting: list[Command] = [("DEL", key) for key in keys.of_one_life]
            deleting.append(("SET", keys.no_beginnings, "1"))
            return LedgerPlan(True, first_entry(erased), [*writing, *deleting])

        if not await self._store.change(self._user_id, ending):
            raise Conflict(REPEAT_ERASURE)
        self.is_ended = True

    async def _refuse_earlier_turns(self, now: float) -> None:
        """From now on no turn is opened that began before. The version changes, so that all look again."""
        keys = UserKeys(self._user_id)

        def refusing(read: LedgerRead) -> LedgerPlan[bool]:
            if ledger_values.renew(read.entry, self._token, until=now) is None:
                return LedgerPlan(False)
            mark = encoded_erasure(ledger_values.refusing(read.erased, until=now))
            return LedgerPlan(True, None, [("SET", keys.erased, mark), ("HSET", keys.queue, "v", secrets.token_hex(8))])

        if not await self._store.change(self._user_id, refusing):
            raise Conflict(REPEAT_ERASURE)

    async def _renew(self, began_at: float, commands: Sequence[Command]) -> None:
        """What was touched is announced: recorded under the next even revision, also if this process dies."""
        key, until, new = UserKeys(self._user_id).changes, began_at + self._lock_seconds, self.touched - self.announced
        is_beyond = len(new) > CHANGES_MAX

        def renewing(read: LedgerRead) -> LedgerPlan[bool]:
            renewed = ledger_values.renew(read.entry, self._token, until=until, is_beyond=is_beyond)
            if renewed is None:
                return LedgerPlan(False)
            announced = [] if is_beyond else _additions(key, renewed.revision + 1, sorted(new))
            return LedgerPlan(True, renewed, [*announced, *commands])

        if not await self._store.change(self._user_id, renewing):
            raise Conflict("the user's lock was lost while it was held: nothing more may be written under it")
        self.announced |= set() if is_beyond else new


def _bytes_of(memory_id: str) -> bytes:
    return memory_id.encode("utf-8", "surrogatepass")
