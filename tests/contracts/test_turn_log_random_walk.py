"""Whatever is done to the queue in whatever order, it agrees with a model that knows nothing of tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from turn_logs import DEPLOYMENTS, LEASE_SECONDS, START, ids_of, lease_at, tell

from memory.errors import Conflict
from memory.ports import LearnDue, Lease, TurnLog

DUE = LearnDue(batch_turns_max=3)
MORE = pytest.mark.soak("more of the same")
WALKS = [
    pytest.param(name, seed, marks=() if (name, seed) == ("sqlite", 0) else MORE)
    for name in DEPLOYMENTS
    for seed in range(4)
]


@dataclass
class ModelWindow:
    user: str
    session: str
    turns: list[str]
    first: int
    state: str = "waiting"
    due_at: float = 0.0
    attempt: int = 0
    outages: int = 0
    token: str = ""  # of the newest lease


@dataclass
class Model:
    ready: list[tuple[str, str, str]] = field(default_factory=list)  # turn, user, session, in the order of opening
    opened: list[str] = field(default_factory=list)
    windows: list[ModelWindow] = field(default_factory=list)
    learnt: list[str] = field(default_factory=list)

    def lease(self, now: float) -> ModelWindow | None:
        """The oldest that is due, of a user whom nobody works for, behind no other of its session."""
        busy = {w.user for w in self.windows if w.state == "leased" and w.due_at > now}
        blocked: set[tuple[str, str]] = set()
        choices: list[ModelWindow] = []
        for window in sorted((w for w in self.windows if w.state != "dead"), key=lambda w: w.first):
            if window.due_at <= now and window.user not in busy and (window.user, window.session) not in blocked:
                choices.append(window)
            blocked.add((window.user, window.session))
        for turn, user, session in self.ready:
            if user not in busy and (user, session) not in blocked:
                mine = [t for t, u, s in self.ready if (u, s) == (user, session)][: DUE.batch_turns_max]
                choices.append(ModelWindow(user, session, mine, self.opened.index(turn)))
                break
        chosen = min(choices, key=lambda w: w.first, default=None)
        if chosen is not None:
            if chosen not in self.windows:
                self.windows.append(chosen)
                self.ready = [entry for entry in self.ready if entry[0] not in chosen.turns]
            chosen.state, chosen.due_at, chosen.attempt = "leased", now + LEASE_SECONDS, chosen.attempt + 1
        return chosen

    def learn(self, window: ModelWindow) -> None:
        self.windows.remove(window)
        window.state = "learnt"
        self.learnt += window.turns

    def counts(self) -> list[int]:
        states = Counter(w.state for w in self.windows for _ in w.turns)
        return [0, len(self.ready), states["leased"], states["waiting"], states["dead"]]


class Walk:
    """One log, one model, and the leases that somebody holds or once held."""

    def __init__(self, log: TurnLog, seed: int) -> None:
        self.log = log
        self.model = Model()
        self.random = Random(seed)
        self.now = START
        self.held: list[tuple[Lease, ModelWindow]] = []

    async def step(self) -> None:
        ways = [self.tell, self.lease, self.end_a_lease, self.wait, self.replay]
        await self.random.choices(ways, weights=[6, 6, 6, 3, 1])[0]()
        depth = await self.log.depth(now=self.now)
        assert [depth.opened, depth.due, depth.leased, depth.retrying, depth.dead] == self.model.counts()

    async def tell(self) -> None:
        turn = f"t{len(self.model.opened)}"
        user, session = self.random.choice("ab"), self.random.choice("xyz")
        await tell(self.log, turn, user=user, session=session)
        self.model.opened.append(turn)
        self.model.ready.append((turn, user, session))

    async def lease(self) -> None:
        lease, expected = await lease_at(self.log, self.now, DUE), self.model.lease(self.now)
        assert ids_of(lease) == ([] if expected is None else expected.turns)
        if lease is not None and expected is not None:
            assert (lease.attempt, lease.outages) == (expected.attempt, expected.outages)
            expected.token = lease.token
            self.held.append((lease, expected))

    async def end_a_lease(self) -> None:
        if not self.held:
            return
        lease, window = self.held.pop(self.random.randrange(len(self.held)))
        how = self.random.choice(["acknowledge", "retry", "sit out", "bury"])
        outage_since = self.now if how == "sit out" else None
        call = {
            "acknowledge": lambda: self.log.acknowledge(lease),
            "bury": lambda: self.log.move_to_dead_letters(lease, now=self.now, reason="r"),
        }.get(how, lambda: self.log.retry_at(lease, due_at=self.now + 20, reason="r", outage_since=outage_since))
        if window.state != "leased" or window.token != lease.token:  # it is somebody else's by now
            with pytest.raises(Conflict):
                await call()
            return
        await call()
        if how == "acknowledge":
            self.model.learn(window)
        elif how == "bury":
            window.state = "dead"
        else:
            window.state, window.due_at = "waiting", self.now + 20
            window.outages = window.outages + 1 if how == "sit out" else 0
            window.attempt -= how == "sit out"

    async def wait(self) -> None:
        self.now += self.random.choice([1, 10, 25])

    async def replay(self) -> None:
        await self.log.replay([])
        for window in self.model.windows:
            if window.state == "dead":
                window.state, window.due_at, window.attempt, window.outages = "waiting", 0.0, 0, 0

    async def learn_everything(self) -> None:
        """From wherever the walk has led, patience learns all that is left."""
        await self.replay()
        while self.model.ready or self.model.windows:
            self.now += LEASE_SECONDS + 10
            await self.lease()
            lease, window = self.held.pop()
            await self.log.acknowledge(lease)
            self.model.learn(window)


@pytest.mark.parametrize(("adapter", "seed"), WALKS)
async def test_the_queue_agrees_with_the_model_on_every_way(adapter: str, seed: int, tmp_path: Path) -> None:
    async with DEPLOYMENTS[adapter](tmp_path).start() as process:
        walk = Walk(process.log, seed)
        for _ in range(150):
            await walk.step()
        await walk.learn_everything()
        assert sorted(walk.model.learnt) == sorted(walk.model.opened)
        assert await lease_at(process.log, walk.now + 1e6, DUE) is None
