"""Whatever happens to sessions, in whatever order: every adapter finds the same ones due, and withdraws the same."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from summarised_sessions import IDLE, VECTOR, summary_of
from turn_logs import DEPLOYMENTS, START, Deployment, Process, a_turn, adapters, lease_at, sqlite_deployment

from memory.model import DueSession, TurnStatus
from memory.ports import Lease

STEPS = 150
USERS, SESSIONS = ("ann", "bob"), ("s1", "s2", "s3")
ENDINGS = (TurnStatus.CLOSED, TurnStatus.CLOSED, TurnStatus.FAILED, TurnStatus.ABORTED)


@dataclass(slots=True)
class Walker:
    """One adapter, with what only it knows: tokens and leases."""

    process: Process
    deployment: Deployment
    lease: Lease | None = None
    due: dict[str, DueSession] = field(default_factory=dict)

    async def look(self) -> dict[str, DueSession]:
        now = self.deployment.clock.now
        found = await self.process.summaries.due(now=now, idle_seconds=IDLE, limit=10)
        self.due = {one.user_id: one for one in found}
        return self.due

    async def seen(self) -> object:
        """What callers see, without tokens and series, which are random."""
        summaries = self.process.summaries
        return [
            (
                [(one.summary.session_id, one.summary.version) for one in await summaries.of_user(user, limit=9)],
                sorted((one.session_id, one.version) for one in await summaries.withdrawn(user, limit=99)),
                [await summaries.is_ended(user, session) for session in SESSIONS],
                [said.turn_id for said in await summaries.said(user, project_id="", until=1e12, after=0, limit=999)],
            )
            for user in USERS
        ]


class Walk:
    """The same steps on both; turns have the same ids."""

    def __init__(self, one: Walker, other: Walker, draw: random.Random) -> None:
        self._both = (one, other)
        self._draw = draw
        self._turns: list[tuple[str, str]] = []  # user, turn
        self._open: list[str] = []

    async def step(self) -> None:
        steps = [self._open_turn, self._finish, self._finish, self._lease, self._end_lease, self._end_lease]
        steps += [self._put, self._put, self._end, self._leave_out, self._withdraw, self._settle, self._postpone]
        seconds = self._draw.choice((0.5, 3.0, 40.0, IDLE / 2, IDLE * 2))
        for walker in self._both:
            walker.deployment.clock.now += seconds
        await self._draw.choice(steps)()

    async def check(self) -> None:
        one, other = [await walker.look() for walker in self._both]
        assert sorted(one) == sorted(other)
        for user in one:
            assert (one[user].version, one[user].tries) == (other[user].version, other[user].tries)
            assert one[user].session_id == other[user].session_id
        assert await self._both[0].seen() == await self._both[1].seen()

    async def _open_turn(self) -> None:
        user, session = self._draw.choice(USERS), self._draw.choice(SESSIONS)
        turn_id = f"t{len(self._turns)}"
        self._turns.append((user, turn_id))
        self._open.append(turn_id)
        for walker in self._both:
            await walker.process.log.open(a_turn(turn_id, user=user, session=session))

    async def _finish(self) -> None:
        if self._open:
            turn_id, status = self._open.pop(self._draw.randrange(len(self._open))), self._draw.choice(ENDINGS)
            for walker in self._both:
                await walker.process.log.finish(turn_id, status=status, answer="so", answered_at=START)

    async def _lease(self) -> None:
        for walker in self._both:
            if walker.lease is None:
                walker.lease = await lease_at(walker.process.log, walker.deployment.clock.now)
        one, other = (walker.lease for walker in self._both)
        assert (one and [turn.id for turn in one.turns]) == (other and [turn.id for turn in other.turns])

    async def _end_lease(self) -> None:
        how, due_at = self._draw.choice(("learn", "learn", "bury", "retry")), self._both[0].deployment.clock.now + 5
        for walker in self._both:
            lease, walker.lease = walker.lease, None
            if lease is None:
                continue
            log = walker.process.log
            if how == "learn":
                await log.acknowledge(lease)
            elif how == "bury":
                await log.move_to_dead_letters(lease, now=due_at, reason="a test")
            else:
                await log.retry_at(lease, due_at=due_at, reason="a test")

    async def _put(self) -> None:
        is_none = self._draw.random() < 0.2
        for user in USERS:
            results = []
            for walker in self._both:
                due = walker.due.get(user)
                made = None if due is None or is_none else summary_of(due, "t")
                results.append(due is not None and await walker.process.summaries.put(due, made, VECTOR))
            assert results[0] == results[1]

    async def _end(self) -> None:
        user, session = self._draw.choice(USERS), self._draw.choice(SESSIONS)
        for walker in self._both:
            await walker.process.summaries.end(user, session)

    async def _leave_out(self) -> None:
        if self._turns:
            user, turn_id = self._draw.choice(self._turns)
            for walker in self._both:
                await walker.process.summaries.leave_out(user, [turn_id, "unknown"])

    async def _withdraw(self) -> None:
        if self._turns:
            user, turn_id = self._draw.choice(self._turns)
            for walker in self._both:
                if walker.lease is None:  # otherwise its window would be another
                    await walker.process.log.withdraw(user, opened_before=1e12, only=[turn_id])

    async def _settle(self) -> None:
        for walker in self._both:
            await walker.process.summaries.settle(await walker.process.summaries.withdrawn(limit=99))

    async def _postpone(self) -> None:
        until = self._both[0].deployment.clock.now + self._draw.choice((1.0, 100.0, IDLE))
        for user in USERS:
            for walker in self._both:
                if due := walker.due.get(user):
                    await walker.process.summaries.postpone(due, until=until)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("adapter", adapters(without=["sqlite"]))
async def test_a_random_walk_sees_the_same_on_every_adapter(adapter: str, seed: int, tmp_path: Path) -> None:
    one, other = sqlite_deployment(tmp_path), DEPLOYMENTS[adapter](tmp_path)
    async with one.start() as first, other.start() as second:
        walk = Walk(Walker(first, one), Walker(second, other), random.Random(seed))
        for _ in range(STEPS):
            await walk.step()
            await walk.check()
