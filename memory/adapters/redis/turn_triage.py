"""The turns that wait to be learnt, on Redis: their number and priority, and which are shed, replayed or dropped."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial

from memory.adapters.redis import log_keys, queue_choice, queue_upkeep, user_queue
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_replica import QueueReplica
from memory.adapters.redis.queue_store import Planned, QueueStore
from memory.adapters.redis.queue_values import GIVEN_UP, QueueChange, UserQueue
from memory.adapters.redis.turn_names import TurnNames
from memory.adapters.redis.turn_records import read_command, record_of
from memory.model import Turn, Urgency
from memory.ports import Backlog, Clock, DeadLetter, FreshTurn, QueueDepth

SHED_LOCK_SECONDS = 30.0  # one process sheds at a time: two would shed twice as much
RELEASE_IF_OURS = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisTurnTriage:
    """`memory.ports.TurnTriage`. Choices are made from a replica of the queues, and again from what is committed."""

    def __init__(self, client: LogClient, store: QueueStore, replica: QueueReplica, *, clock: Clock) -> None:
        self._client = client
        self._store = store
        self._names = TurnNames(client)
        self._replica = replica
        self._clock = clock

    async def unexamined(self, *, limit: int) -> list[FreshTurn]:
        fresh = queue_choice.unexamined(await self._queues(), limit=limit)
        wanted = {(one.user_id, turn_id): None for one in fresh for turn_id in (*one.earlier, one.turn.id)}
        replies = await self._client.calls([read_command(UserKeys(user), turn_id) for user, turn_id in wanted])
        turns: dict[str, Turn] = {}
        for reply in replies:
            record = record_of(reply)
            if record is not None:
                turns[record.beginning.id] = record.turn()
        return [
            FreshTurn(turns[one.turn.id], tuple(turns[turn_id] for turn_id in one.earlier if turn_id in turns))
            for one in fresh
            if one.turn.id in turns
        ]

    async def mark(self, urgencies: Mapping[str, Urgency]) -> None:
        turn_ids = list(urgencies)
        users = await self._names.users_of(turn_ids)
        by_user: dict[str, dict[str, Urgency]] = {}
        for turn_id, user in zip(turn_ids, users, strict=True):
            if user is not None:
                by_user.setdefault(user, {})[turn_id] = urgencies[turn_id]
        for user_id, own in by_user.items():
            await self._store.change(user_id, lambda queue, _, own=own: _changed(queue, user_queue.mark(queue, own)))  # type: ignore[misc]

    async def shed(self, *, now: float, keep: int, window_turns: int) -> int:
        """0 while another process is shedding."""
        if queue_choice.waiting(await self._queues()) <= keep:
            return 0
        taken = 0
        async with self._shed_lock() as is_ours:
            if not is_ours:
                return 0
            queues = await self._queues()
            surplus = queue_choice.waiting(queues) - keep
            for window in queue_choice.sheddable(queues, surplus=surplus, window_turns=window_turns):
                taken += await self._store.change(window.user_id, partial(_shed, window=window, now=now))
        return taken

    async def make_due_now(self, user_id: str, *, session_id: str = "") -> None:
        await self._store.change(user_id, lambda queue, _: _changed(queue, user_queue.make_due_now(queue, session_id)))

    async def depth(self, *, now: float) -> QueueDepth:
        return queue_choice.depth(await self._queues(), now=now)

    async def backlog(self, user_id: str, *, session_id: str = "", opened_before: float) -> Backlog:
        queue = await self._store.read(user_id)
        return queue_choice.backlog(queue, session_id, opened_before=opened_before, now=self._clock())

    async def dead_letters(self, *, limit: int) -> list[DeadLetter]:
        return queue_choice.dead_letters(await self._queues(), limit=limit)

    async def replay(self, window_ids: Collection[str]) -> int:
        return await self._decide(partial(queue_upkeep.replay, window_ids=window_ids))

    async def drop(self, window_ids: Collection[str]) -> int:
        return await self._decide(partial(queue_upkeep.drop, window_ids=window_ids))

    async def _decide(self, decision: Callable[[UserQueue], tuple[QueueChange, int]]) -> int:
        """Apply an operator's decision to all users with windows that were given up."""
        total = 0
        for queue in await self._queues():
            if any(window.state in GIVEN_UP for window in queue.windows):
                total += await self._store.change(queue.user_id, partial(_decided, decision=decision))
        return total

    async def _queues(self) -> list[UserQueue]:
        return [summary.queue for summary in await self._replica.refreshed()]

    @asynccontextmanager
    async def _shed_lock(self) -> AsyncIterator[bool]:
        token = secrets.token_hex(16)
        milliseconds = int(SHED_LOCK_SECONDS * 1000)
        is_ours = await self._client.call("SET", log_keys.SHED_LOCK, token, "NX", "PX", milliseconds) is not None
        try:
            yield is_ours
        finally:
            if is_ours:
                await self._client.run(RELEASE_IF_OURS, [log_keys.SHED_LOCK], [token])


def _changed(queue: UserQueue, change: QueueChange) -> Planned[None]:
    return Planned(None, change if change.queue != queue else None)


def _shed(queue: UserQueue, _: object, *, window: queue_choice.SheddableWindow, now: float) -> Planned[int]:
    change = queue_upkeep.shed(queue, window.session_id, window.turn_ids, now=now)
    return Planned(0) if change is None else Planned(len(window.turn_ids), change)


def _decided(queue: UserQueue, _: object, *, decision: Callable[[UserQueue], tuple[QueueChange, int]]) -> Planned[int]:
    change, count = decision(queue)
    return Planned(count, change if count else None)
