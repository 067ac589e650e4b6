"""The rules of users' queues without a server: each call is a transition of one value. For random walks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count

from memory.adapters.redis import queue_choice, queue_upkeep, queue_values, user_queue
from memory.adapters.redis.queue_values import QueueChange, UserQueue, WaitingTurn
from memory.adapters.turn_rules import Holder
from memory.model import Turn, TurnStatus, Urgency
from memory.ports import DeadLetter, LearnDue, Lease, QueueDepth


class PureQueues:
    """What a walk needs of the turn log. Values go through their encoding at each step."""

    def __init__(self) -> None:
        self._stored: dict[str, bytes] = {}
        self._turns: dict[str, Turn] = {}
        self._plans: dict[str, bytes] = {}
        self._seqs, self._tokens = count(1), count()

    @property
    def queues(self) -> list[UserQueue]:
        return [queue_values.decode(stored, user) for user, stored in self._stored.items()]

    def _queue(self, user_id: str) -> UserQueue:
        return queue_values.decode(self._stored.get(user_id), user_id)

    def _commit(self, user_id: str, change: QueueChange) -> None:
        for window_id in queue_values.effects_of(self._queue(user_id), change).plans_to_delete:
            del self._plans[window_id]
        self._stored[user_id] = queue_values.encode(change.queue)

    async def open(self, turn: Turn) -> None:
        self._turns[turn.id] = turn
        scope = turn.scope
        seq = next(self._seqs)
        opened = WaitingTurn(
            seq, turn.id, scope.session_id, scope.project_id, turn.at, stage="open", size=9, is_open=True
        )
        self._commit(scope.user_id, user_queue.add(self._queue(scope.user_id), opened))

    async def finish(self, turn_id: str, *, status: TurnStatus, answer: str, answered_at: float) -> None:
        user = self._turns[turn_id].scope.user_id
        change = user_queue.finish(self._queue(user), turn_id, status=status, answer_bytes=len(answer), now=answered_at)
        assert change is not None
        self._commit(user, change)

    async def mark(self, urgencies: Mapping[str, Urgency]) -> None:
        for queue in self.queues:
            self._commit(queue.user_id, user_queue.mark(queue, urgencies))

    async def lease(self, *, now: float, seconds: float, due: LearnDue) -> Lease | None:
        summaries = [queue_choice.summary_of(queue) for queue in self.queues]
        work = queue_choice.find_due(summaries, now=now, due=due)
        if work is None:
            return None
        holder = Holder(f"token {next(self._tokens)}", "a worker", now + seconds)
        queue = self._queue(work.user_id)
        change, window_id = user_queue.take(queue, work, turns_max=due.batch_turns_max, holder=holder)
        self._commit(work.user_id, change)
        window = change.queue.window(window_id)
        assert window is not None
        turns = tuple(self._turns[turn.id] for turn in change.queue.turns_of(window_id))
        plan = self._plans[window_id] if window.has_plan else None
        return Lease(
            window_id, work.user_id, work.session_id, turns, window.attempt, holder.token, plan, outages=window.outages
        )

    async def acknowledge(self, lease: Lease) -> None:
        self._commit(lease.user_id, user_queue.acknowledge(self._queue(lease.user_id), lease))

    async def retry_at(self, lease: Lease, *, due_at: float, reason: str, outage_since: float | None = None) -> None:
        queue = self._queue(lease.user_id)
        change = user_queue.give_back(queue, lease, due_at=due_at, reason=reason, outage_since=outage_since)
        self._commit(lease.user_id, change)

    async def move_to_dead_letters(self, lease: Lease, *, now: float, reason: str) -> None:
        self._commit(lease.user_id, user_queue.bury(self._queue(lease.user_id), lease, now=now, reason=reason))

    async def save_plan(self, lease: Lease, plan: bytes) -> None:
        self._commit(lease.user_id, user_queue.plan(self._queue(lease.user_id), lease))
        self._plans[lease.window_id] = plan

    async def replay(self, window_ids: Collection[str]) -> int:
        total = 0
        for queue in self.queues:
            change, replayed = queue_upkeep.replay(queue, window_ids)
            self._commit(queue.user_id, change)
            total += replayed
        return total

    async def drop(self, window_ids: Collection[str]) -> int:
        total = 0
        for queue in self.queues:
            change, dropped = queue_upkeep.drop(queue, window_ids)
            self._commit(queue.user_id, change)
            total += dropped
        return total

    async def dead_letters(self, *, limit: int) -> list[DeadLetter]:
        return queue_choice.dead_letters(self.queues, limit=limit)

    async def depth(self, *, now: float) -> QueueDepth:
        return queue_choice.depth(self.queues, now=now)
