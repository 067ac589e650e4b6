"""Random trees of edits: the record is what was said, and what is recalled is what still holds.

A client talks, edits, asks for another answer, goes back to an earlier branch, opens a second tab with the same
beginning, gets errors, and talks while we are down. Requests go through the reply side and the recorder into a real
turn log, learning through a real worker with a reader without a model.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from learning_parts import Bench
from turn_logs import START, Process, sqlite_deployment

from extproc import sent_again
from extproc.identity import IdentityMode
from extproc.observe import CloseTurn, Observation, OpenTurn
from extproc.recorder import TurnRecorder
from extproc.server import contained
from memory.model import MemoryStatus, Turn, TurnStatus

TREES = 1_000
TREES_PER_USER = 4
USERS_AT_ONCE = 25
PHASES = 4  # after each of them we learn, and every process starts again
ACTS_PER_PHASE = 2
HEADERS = [(":method", b"POST"), (":path", b"/v1/chat/completions")]


@dataclass(eq=False)
class Said:
    """What the client knows of one exchange. `turn_id`: of its turn, "" if nobody saw it."""

    text: str
    answer: str
    parent: Said | None = None
    turn_id: str = ""
    is_failed: bool = False
    is_sent: bool = False

    def path(self) -> list[Said]:
        above = self.parent.path() if self.parent else []
        return [*above, self]

    @property
    def is_seen(self) -> bool:
        """Whether somebody saw it, or something before it, when it was said."""
        return bool(self.turn_id) or (self.parent is not None and self.parent.is_seen)

    def top(self) -> Said:
        """The beginning of the session that it belongs to."""
        return self.parent.top() if self.parent is not None and self.parent.is_seen else self


@dataclass
class Tab:
    """One conversation of the client. `leaf`: what it shows."""

    said: list[Said] = field(default_factory=list)
    leaf: Said | None = None


@dataclass
class Person:
    """A user with some tabs, who acts at random."""

    name: str
    chance: random.Random
    tabs: list[Tab] = field(default_factory=list)
    newest: dict[Said, Said] = field(default_factory=dict)  # by the beginning of a session, its newest request
    numbers: int = 0

    def news(self) -> str:
        self.numbers += 1
        return f"I like {self.name}thing{self.numbers} a lot"

    async def act(self, proxy: Proxy) -> None:
        chance = self.chance
        tab = chance.choice(self.tabs)
        act = chance.choice(("say", "say", "say", "edit", "again", "back", "miss", "fail"))
        if tab.leaf is None:
            await self.begin(proxy, tab)
            return
        edited = chance.choice(tab.leaf.path())
        match act:
            case "edit" if edited.parent is not None:
                await self.say(proxy, tab, self.news(), edited.parent)
            case "again" if edited.parent is not None and edited.turn_id:
                await self.say(proxy, tab, edited.text, edited.parent)
            case "back":
                shown = [one for one in tab.said if not one.is_failed]
                left = [one for one in shown if one.is_sent and not self.holds(one)]
                await self.say(proxy, tab, self.news(), chance.choice(left or shown))
            case "miss":
                self.miss(tab, tab.leaf)
                await self.say(proxy, tab, self.news(), tab.leaf)
            case "fail":
                text = self.news()
                await self.say(proxy, tab, text, tab.leaf, is_failed=True)
                await self.say(proxy, tab, text, tab.leaf)
            case _:
                await self.say(proxy, tab, self.news(), tab.leaf)

    async def begin(self, proxy: Proxy, tab: Tab) -> None:
        others = [other.said[0].text for other in self.tabs if other.said and other.said[0].turn_id]
        if others and self.chance.random() < 0.5:
            await self.say(proxy, tab, self.chance.choice(others), None)
        elif self.chance.random() < 0.2:
            self.miss(tab, None)
        else:
            await self.say(proxy, tab, self.news(), None)

    def miss(self, tab: Tab, parent: Said | None) -> None:
        """It says something while we are down."""
        tab.leaf = Said(self.news(), f"Answer {self.numbers} of the outage.", parent)
        tab.said.append(tab.leaf)

    async def say(self, proxy: Proxy, tab: Tab, text: str, parent: Said | None, *, is_failed: bool = False) -> None:
        self.numbers += 1
        said = Said(text, "" if is_failed else f"Answer {self.numbers}.", parent, is_failed=is_failed)
        said.turn_id = await proxy.chat(self.name, said)
        for one in said.path():
            one.is_sent = True
        tab.said.append(said)
        tab.leaf = parent if is_failed else said
        self.newest[said.top()] = said

    def sent(self) -> list[Said]:
        return [one for tab in self.tabs for one in tab.said if one.is_sent]

    def holds(self, said: Said) -> bool:
        """Whether its session has not left it, or was never seen to begin."""
        return not said.is_seen or said in self.newest[said.top()].path()


@dataclass
class Proxy:
    """The reply side and the recorder of one process."""

    bench: Bench
    recorder: TurnRecorder
    ids: Any

    async def chat(self, user: str, said: Said) -> str:
        turn_id = f"turn-{next(self.ids)}"
        watch = Observation(turn_id=turn_id, mode=IdentityMode.DEVELOPMENT)
        watch.on_request_headers([*HEADERS, ("x-authz-user-id", user.encode())])
        messages = []
        for one in said.path():
            messages += [{"role": "user", "content": one.text}, {"role": "assistant", "content": one.answer}]
        body = json.dumps({"messages": messages[:-1]}).encode()
        self.bench.deployment.clock.now += 1
        opening = watch.on_request_body(body, is_end=True, at=self.bench.deployment.clock.now)
        assert isinstance(opening, OpenTurn)
        begun = self.recorder.open(opening)
        assert begun is not None
        assert await begun is not None
        status = TurnStatus.FAILED if said.is_failed else TurnStatus.CLOSED
        self.recorder.close(CloseTurn(turn_id, status, said.answer, START), after=begun)
        return turn_id


@pytest.mark.slow("1,000 trees of about ten requests, each with its own commit")
async def test_the_record_is_what_was_said_and_only_the_branches_that_hold_are_recalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent_again, "PATIENCE_SECONDS", (0.0,))
    kinds: Counter[str] = Counter()
    for first in range(0, TREES // TREES_PER_USER, USERS_AT_ONCE):
        folder = tmp_path / str(first)
        folder.mkdir()
        bench = Bench(sqlite_deployment(folder), has_sets=False)
        people = [
            Person(f"u{number}", random.Random(number), [Tab() for _ in range(TREES_PER_USER)])
            for number in range(first, first + USERS_AT_ONCE)
        ]
        ids = iter(range(1_000_000))
        for _ in range(PHASES):
            async with bench.deployment.start() as process:
                await phase(bench, process, people, ids)
                await bench.worker(process).work_off()
                for person in people:
                    await check(bench, process, person, kinds)
        kinds["resumed"] += int(bench.count("memproxy_facts_total", outcome="restored"))
    assert min(kinds[kind] for kind in ("abandoned", "filled_in", "resumed", "failed")) > TREES / 20


async def phase(bench: Bench, process: Process, people: list[Person], ids: Any) -> None:
    recorder = TurnRecorder(process.log, bench.metrics, bench.deployment.clock, contained, str, None)  # type: ignore[arg-type]
    async with asyncio.timeout(300), recorder:
        proxy = Proxy(bench, recorder, ids)

        async def live(person: Person) -> None:
            for _ in range(ACTS_PER_PHASE * TREES_PER_USER):
                await person.act(proxy)

        async with asyncio.TaskGroup() as group:
            for person in people:
                group.create_task(live(person))


async def check(bench: Bench, process: Process, person: Person, kinds: Counter[str]) -> None:
    record = [turn async for turn in process.log.turns(person.name)]
    said = person.sent()
    as_said = Counter((one.text, one.answer, status_of(one)) for one in said)
    assert Counter((turn.messages[0].content, turn.answer, turn.status) for turn in record) == as_said
    by_words = {(turn.messages[0].content, turn.answer): turn for turn in record}
    check_sessions(person, by_words)
    memories = await bench.memories(person.name, status=MemoryStatus.ACTIVE)
    holding = [one for one in said if person.holds(one) and not one.is_failed]
    assert sorted(memory.content for memory in memories) == sorted({one.text for one in holding})
    evidence = Counter(quoted.turn_id for memory in memories for quoted in memory.evidence)
    turns = [by_words[one.text, one.answer].id for one in holding]
    assert evidence == Counter(turns)
    assert set(evidence.values()) <= {1}
    kinds["abandoned"] += sum(not person.holds(one) for one in said)
    kinds["filled_in"] += sum(turn.status is TurnStatus.FILLED_IN for turn in record)
    kinds["failed"] += sum(one.is_failed for one in said)


def check_sessions(person: Person, by_words: dict[tuple[str, str], Turn]) -> None:
    sessions: dict[Said, str] = {}
    for one in person.sent():
        if one.is_seen:
            session_id = by_words[one.text, one.answer].scope.session_id
            assert sessions.setdefault(one.top(), session_id) == session_id
    assert len(set(sessions.values())) == len(sessions)


def status_of(said: Said) -> TurnStatus:
    if said.is_failed:
        return TurnStatus.FAILED
    return TurnStatus.CLOSED if said.turn_id else TurnStatus.FILLED_IN
