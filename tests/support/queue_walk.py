"""Random walks over a queue of turns, and a model of it that fits on a page.

The model knows nothing of tables: it keeps turns in a list, in the order of opening, and says what a lease must hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from turn_logs import START, ids_of, lease_at, tell

from memory.errors import Conflict
from memory.model import Urgency
from memory.ports import LearnDue, Lease, TurnLog

STEPS = 150
ASKED_SHARE = 0.15  # of the turns
DUE = LearnDue(batch_turns_max=3)


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
    is_asked: bool = False
    plan: bytes | None = None
    token: str = ""  # of the newest lease


@dataclass
class Model:
    ready: list[tuple[str, str, str]] = field(default_factory=list)  # turn, user, session, in the order of opening
    opened: list[str] = field(default_factory=list)
    windows: list[ModelWindow] = field(default_factory=list)
    learnt: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)  # turns that ask something of memory: urgent

    def lease(self, now: float) -> ModelWindow | None:
        chosen = self.urgent(now) or self.oldest(now)
        if chosen is not None:
            if chosen not in self.windows:
                self.windows.append(chosen)
                self.ready = [entry for entry in self.ready if entry[0] not in chosen.turns]
            chosen.state, chosen.due_at, chosen.attempt = "leased", now + 30, chosen.attempt + 1
        return chosen

    def urgent(self, now: float) -> ModelWindow | None:
        """The ready turns of the first session with a request, up to its last; past what waits only if nothing else."""
        for goes_past in (False, True):
            for turn, user, session in self.ready:
                mine = [t for t, u, s in self.ready if (u, s) == (user, session)]
                requests = [place for place, t in enumerate(mine) if t in self.asked]
                own = [w for w in self.windows if w.user == user and w.state != "dead"]
                is_busy = any(w.state == "leased" and w.due_at > now for w in own)
                held_up = [w for w in own if w.session == session and (not goes_past or w.due_at <= now)]
                if requests and mine[0] == turn and not is_busy and not held_up:
                    taken = mine[: min(requests[-1] + 1, DUE.batch_turns_max)]
                    return ModelWindow(user, session, taken, self.opened.index(turn), is_asked=True)
        return None

    def oldest(self, now: float) -> ModelWindow | None:
        busy = {w.user for w in self.windows if w.state == "leased" and w.due_at > now}
        live = sorted((w for w in self.windows if w.state != "dead"), key=lambda w: w.first)
        blocked: set[tuple[str, str]] = set()
        choices: list[ModelWindow] = []
        for window in live:
            is_behind = (window.user, window.session) in blocked and not window.is_asked
            if window.due_at <= now and window.user not in busy and not is_behind:
                choices.append(window)
            blocked.add((window.user, window.session))
        for turn, user, session in self.ready:
            if user not in busy and (user, session) not in blocked:
                mine = [t for t, u, s in self.ready if (u, s) == (user, session)][: DUE.batch_turns_max]
                choices.append(ModelWindow(user, session, mine, self.opened.index(turn)))
                break
        return min(choices, key=lambda w: w.first, default=None)


class Walk:
    """One log, one model, and the leases that somebody holds or once held."""

    def __init__(self, log: TurnLog, seed: int) -> None:
        self.log = log
        self.model = Model()
        self.random = Random(seed)
        self.now = START
        self.held: list[tuple[Lease, ModelWindow]] = []

    async def step(self) -> None:
        chosen = self.random.choices(
            [self.tell, self.lease, self.end_a_lease, self.wait, self.replay, self.drop], weights=[6, 6, 6, 3, 1, 1]
        )[0]
        await chosen()
        assert await self.counts() == self.model_counts()

    async def tell(self) -> None:
        turn = f"t{len(self.model.opened)}"
        user, session = self.random.choice("ab"), self.random.choice("xyz")
        await tell(self.log, turn, user=user, session=session)
        self.model.opened.append(turn)
        self.model.ready.append((turn, user, session))
        if self.random.random() < ASKED_SHARE:
            await self.log.mark({turn: Urgency(1.0, is_explicit=True, asks_memory=True)})
            self.model.asked.add(turn)

    async def lease(self) -> None:
        lease, expected = await lease_at(self.log, self.now, DUE), self.model.lease(self.now)
        assert ids_of(lease) == ([] if expected is None else expected.turns)
        if lease is not None and expected is not None:
            assert (lease.attempt, lease.outages, lease.plan) == (expected.attempt, expected.outages, expected.plan)
            expected.token = lease.token
            self.held.append((lease, expected))

    async def end_a_lease(self) -> None:
        if not self.held:
            return
        lease, window = self.held.pop(self.random.randrange(len(self.held)))
        is_ours = window in self.model.windows and window.state == "leased" and window.token == lease.token
        how = self.random.choice(["acknowledge", "retry", "sit out", "bury", "plan"])
        call = {
            "acknowledge": lambda: self.log.acknowledge(lease),
            "retry": lambda: self.log.retry_at(lease, due_at=self.now + 20, reason="r"),
            "sit out": lambda: self.log.retry_at(lease, due_at=self.now + 20, reason="r", outage_since=self.now),
            "bury": lambda: self.log.move_to_dead_letters(lease, now=self.now, reason="r"),
            "plan": lambda: self.log.save_plan(lease, how.encode() + lease.token.encode()),
        }[how]
        if not is_ours:
            with pytest.raises(Conflict):
                await call()
            return
        await call()
        if how == "acknowledge":
            self.model.windows.remove(window)
            self.model.learnt += window.turns
        elif how == "retry":
            window.state, window.due_at, window.outages = "waiting", self.now + 20, 0
        elif how == "sit out":
            window.state, window.due_at, window.outages = "waiting", self.now + 20, window.outages + 1
            window.attempt -= 1
        elif how == "bury":
            window.state = "dead"
        else:
            window.plan = how.encode() + lease.token.encode()
            self.held.append((lease, window))

    async def wait(self) -> None:
        self.now += self.random.choice([1, 10, 25])

    async def replay(self) -> None:
        await self.log.replay([])
        for window in self.model.windows:
            if window.state == "dead":
                window.state, window.due_at, window.attempt, window.outages = "waiting", 0.0, 0, 0

    async def drop(self) -> None:
        letters = await self.log.dead_letters(limit=1)
        await self.log.drop([letter.window_id for letter in letters])
        self.model.windows = [w for w in self.model.windows if not letters or w.turns != list(letters[0].turn_ids)]

    async def counts(self) -> list[int]:
        depth = await self.log.depth(now=self.now)
        return [depth.opened, depth.due, depth.leased, depth.retrying, depth.dead]

    def model_counts(self) -> list[int]:
        by_state = [
            sum(len(w.turns) for w in self.model.windows if w.state == state) for state in ("leased", "waiting", "dead")
        ]
        return [0, len(self.model.ready), *by_state]

    async def learn_everything(self) -> None:
        """From wherever the walk has led, patience learns all that is left."""
        await self.replay()
        for _ in range(STEPS):
            self.now += 40
            await self.lease()
            for lease, window in self.held:
                if window.token == lease.token and window.state == "leased":
                    await self.log.acknowledge(lease)
                    self.model.windows.remove(window)
                    window.state = "learnt"
                    self.model.learnt += window.turns
        assert await self.counts() == [0, 0, 0, 0, 0]
