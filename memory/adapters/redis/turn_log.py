"""Recording of turns and leases of windows on Redis: each call is one rule (`user_queue`) on one user's queue.

This module only turns calls into loads, rules and commits. A turn counts from its arrival (the clock at the call), not
from its own time, which may be years ago.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from memory.adapters.redis import queue_choice, user_queue
from memory.adapters.redis.branch_shifts import BranchShifts
from memory.adapters.redis.branches import Branches
from memory.adapters.redis.known_exchanges import KnownExchanges
from memory.adapters.redis.ledger_store import LedgerStore
from memory.adapters.redis.log_client import LogClient, Reply
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.queue_replica import QueueReplica
from memory.adapters.redis.queue_store import Planned, QueueStore
from memory.adapters.redis.queue_values import UserQueue
from memory.adapters.redis.session_events import WentOn
from memory.adapters.redis.turn_changes import NewTurn, TurnChanges
from memory.adapters.redis.turn_names import TurnNames
from memory.adapters.redis.turn_order import TurnOrder
from memory.adapters.redis.turn_records import TurnEnd, end_of, end_stored, read_command, record_of
from memory.adapters.turn_rules import Holder
from memory.errors import BadInput, Unavailable
from memory.model import Turn, TurnStatus
from memory.ports import Clock, LearnDue, Lease

LEASE_TRIES_MAX = 100  # each loss means that another process took that user's work


class RedisTurnRecording:
    """`memory.ports.TurnRecording` without what hangs on it: messages, trees, chains and times. `order`: of all that
    records turns."""

    def __init__(
        self, client: LogClient, store: QueueStore, owners: RedisOwners, order: TurnOrder, *, clock: Clock
    ) -> None:
        self._client = client
        self._store = store
        self._names = TurnNames(client)
        self._exchanges = KnownExchanges(client)
        self._owners = owners
        self._order = order
        self._clock = clock

    async def open(self, turn: Turn) -> None:
        if turn.status is not TurnStatus.OPENED:
            raise BadInput(f"only a turn of status opened can be opened; this one is {turn.status.value}: append it")
        async with self._order.of(turn.id):
            await self._owners.note(turn.scope.user_id)
            await self._insert(turn, owner=self._owners.name)

    async def append(self, turn: Turn) -> None:
        if turn.status is TurnStatus.OPENED:
            raise BadInput("a turn to append must have ended: give it the status closed, failed, aborted or unknown")
        async with self._order.of(turn.id):
            await self._insert(turn, owner="")

    async def finish(
        self, turn_id: str, *, status: TurnStatus, answer: str, answered_at: float, receipt_id: str = ""
    ) -> None:
        if status is TurnStatus.OPENED:
            raise BadInput("a turn cannot finish as opened: say how it ended")
        now = self._clock()
        end = end_of(status, answer=answer, answered_at=answered_at, receipt_id=receipt_id, finished_at=now)
        async with self._order.of(turn_id):
            user_id = await self._user_of(turn_id)
            if user_id is not None:
                ending = partial(self._finish, turn_id=turn_id, end=end, now=now)
                await self._store.plan(user_id, ending)

    async def complete(self, turn_id: str, *, answer: str, answered_at: float) -> None:
        end = end_of(TurnStatus.CLOSED, answer=answer, answered_at=answered_at, finished_at=None)
        async with self._order.of(turn_id):
            user_id = await self._user_of(turn_id)
            if user_id is not None:
                reading = [read_command(UserKeys(user_id), turn_id)]
                rule = partial(_complete, turn_id=turn_id, end=end, ended_as=TurnStatus.CLOSED)
                await self._store.change(user_id, rule, reading=reading)

    async def _insert(self, turn: Turn, *, owner: str) -> None:
        """A known id changes nothing, whoever's it is."""
        user_id = turn.scope.user_id
        (seq,) = await self._names.claim(user_id, [turn.id])
        if seq is None:
            return
        words = await self._exchanges.words_digest(turn)
        rule = partial(self._inserting, new=NewTurn(turn, seq, self._clock(), owner, words=words))
        await self._store.change(user_id, rule, reading=[("EXISTS", UserKeys(user_id).turn(turn.id))])

    def _inserting(self, queue: UserQueue, replies: Sequence[Reply], *, new: NewTurn) -> Planned[None]:
        (is_known,) = replies
        changes = TurnChanges(queue)
        if not is_known:
            changes.insert(new)
            changes.marks += self._store.inserted(queue.user_id, new.at)
            changes.after += self._names.keeping(changes.keys.digest, [new.turn.id])
        return changes.planned(None)

    async def _finish(self, queue: UserQueue, *, turn_id: str, end: TurnEnd, now: float) -> Planned[None]:
        """Its answer may come so early that the client has left the turn, or so late that others made it unknown."""
        status = TurnStatus(end.status)
        change = user_queue.finish(queue, turn_id, status=status, answer_bytes=len(end.answer), now=now)
        turn = queue.turn(turn_id)
        if change is None or turn is None:
            if status is not TurnStatus.CLOSED:
                return Planned(None)
            fields = await self._client.call(*read_command(UserKeys(queue.user_id), turn_id))
            return _complete(queue, [fields], turn_id=turn_id, end=end, ended_as=TurnStatus.UNKNOWN)
        changes, branches = TurnChanges(queue), Branches(self._client, queue.user_id)
        changes.apply(change)
        changes.commands += end_stored(changes.keys, turn_id, end)
        changes.sessions.append(WentOn(turn.session_id, now))
        if turn_id not in change.stages and end.answered_at is not None:
            await BranchShifts(branches, changes).answered(turn_id, at=end.answered_at)
            changes.commands += await branches.commands()
        return changes.planned(None)

    async def _user_of(self, turn_id: str) -> str | None:
        (user_id,) = await self._names.users_of([turn_id])
        return user_id


def _complete(
    queue: UserQueue, replies: Sequence[Reply], *, turn_id: str, end: TurnEnd, ended_as: TurnStatus
) -> Planned[None]:
    """Close a turn that ended so, or is unknown, without an answer. Its branch is not looked at again."""
    (fields,) = replies
    record = record_of(fields)
    if record is None or record.status not in (ended_as, TurnStatus.UNKNOWN) or record.end.answer:
        return Planned(None)
    before = record.end
    kept = TurnEnd(end.status, end.answer, end.answered_at, end.receipt_id or before.receipt_id, before.finished_at)
    change = user_queue.grow(queue, turn_id, answer_bytes=len(end.answer))
    return Planned(None, change, end_stored(UserKeys(queue.user_id), turn_id, kept))


class RedisWindowLeases:
    """`memory.ports.WindowLeases`. Work is chosen from a replica, and chosen again from what is read to commit it."""

    def __init__(
        self, client: LogClient, store: QueueStore, owners: RedisOwners, replica: QueueReplica, *, clock: Clock
    ) -> None:
        self._client = client
        self._store = store
        self._owners = owners
        self._replica = replica
        self._ledger = LedgerStore(client)
        self._names = TurnNames(client)
        self._clock = clock
        self._leasing = asyncio.Lock()  # calls of this process would only lose to each other

    async def recover(self) -> int:
        """Also frees users' locks of dead processes, and those that were held for too long."""
        now, found = self._clock(), 0
        for owner in await self._owners.find_dead():
            for user_id in await self._owners.users_of(owner):
                await self._ledger.repair(user_id, owner, now=now)
                found += await self._store.change(user_id, partial(_release, owner=owner, now=now))
                await self._store.mark_again(user_id)
                await self._name_again(user_id)
            await self._owners.forget(owner)
        await self._ledger.repair_expired(now=now)
        return found

    async def _name_again(self, user_id: str) -> None:
        """Whoever recorded its turns died, maybe before their names were kept; or while others were deleted."""
        turn_ids = [turn.id for turn in (await self._store.read(user_id)).turns]
        await self._client.calls(self._names.keeping(UserKeys(user_id).digest, turn_ids))
        await self._names.release(user_id, ())

    async def lease(self, *, now: float, seconds: float, due: LearnDue) -> Lease | None:
        """Polling costs one round trip where nothing is due, and may be done every 50 ms."""
        async with self._leasing:
            for _ in range(LEASE_TRIES_MAX):
                work = queue_choice.find_due(await self._replica.refreshed(), now=now, due=due)
                if work is None:
                    return None
                holder = Holder(secrets.token_hex(16), self._owners.name, now + seconds)
                lease = await self._take(work.user_id, holder, now=now, due=due)
                if lease is not None:
                    return lease
                await self._replica.reload(work.user_id)
        return None

    async def extend(self, lease: Lease, *, until: float) -> None:
        await self._store.change(
            lease.user_id, lambda queue, _: Planned(None, user_queue.extend(queue, lease, until=until))
        )

    async def save_plan(self, lease: Lease, plan: bytes) -> None:
        storing = ("SET", UserKeys(lease.user_id).plan(lease.window_id), plan)
        await self._store.change(
            lease.user_id, lambda queue, _: Planned(None, user_queue.plan(queue, lease), [storing])
        )

    async def acknowledge(self, lease: Lease) -> None:
        await self._store.change(lease.user_id, lambda queue, _: Planned(None, user_queue.acknowledge(queue, lease)))

    async def retry_at(self, lease: Lease, *, due_at: float, reason: str, outage_since: float | None = None) -> None:
        give_back = partial(user_queue.give_back, lease=lease, due_at=due_at, reason=reason, outage_since=outage_since)
        await self._store.change(lease.user_id, lambda queue, _: Planned(None, give_back(queue)))

    async def move_to_dead_letters(self, lease: Lease, *, now: float, reason: str) -> None:
        await self._store.change(
            lease.user_id, lambda queue, _: Planned(None, user_queue.bury(queue, lease, now=now, reason=reason))
        )

    async def _take(self, user_id: str, holder: Holder, *, now: float, due: LearnDue) -> Lease | None:
        """None if the user's work was taken meanwhile."""
        await self._owners.note(user_id)
        try:
            taken = await self._store.change(user_id, partial(_take, holder=holder, now=now, due=due))
            return None if taken is None else await self._lease_of(*taken, token=holder.token)
        except (asyncio.CancelledError, Unavailable):  # the lease may exist by now without its caller knowing
            with suppress(Unavailable):  # then it ends by itself
                await self._store.change(user_id, partial(_take_back, token=holder.token))
            raise

    async def _lease_of(self, queue: UserQueue, window_id: str, *, token: str) -> Lease | None:
        """None if the window was changed before its turns were read."""
        keys, turns = UserKeys(queue.user_id), queue.turns_of(window_id)
        window = queue.window(window_id)
        assert window is not None  # just taken
        plan, *replies = await self._client.calls(
            [("GET", keys.plan(window_id)), *(read_command(keys, turn.id) for turn in turns)]
        )
        records = [record for reply in replies if (record := record_of(reply)) is not None]
        if len(records) != len(turns):
            return None
        return Lease(
            window_id,
            queue.user_id,
            window.session_id,
            tuple(record.turn() for record in records),
            window.attempt,
            token,
            plan,
            min(turn.finished_at for turn in turns),
            window.outages,
            window.outage_since,
        )


def _release(queue: UserQueue, _: Sequence[Reply], *, owner: str, now: float) -> Planned[int]:
    change = user_queue.release(queue, owner, now=now)
    if change.queue == queue:
        return Planned(0)
    sessions = {turn.session_id for turn in queue.turns if turn.id in change.ended}
    return Planned(len(change.ended), change, sessions=[WentOn(session_id, now) for session_id in sorted(sessions)])


def _take(
    queue: UserQueue, _: Sequence[Reply], *, holder: Holder, now: float, due: LearnDue
) -> Planned[tuple[UserQueue, str] | None]:
    work = queue_choice.due_of(queue_choice.summary_of(queue), now=now, due=due)
    if work is None:
        return Planned(None)
    change, window_id = user_queue.take(queue, work, turns_max=due.batch_turns_max, holder=holder)
    return Planned((change.queue, window_id), change)


def _take_back(queue: UserQueue, _: Sequence[Reply], *, token: str) -> Planned[None]:
    change = user_queue.take_back(queue, token)
    return Planned(None, change if change.queue != queue else None)
