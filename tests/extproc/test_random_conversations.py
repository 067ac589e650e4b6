"""Random conversations: the record is what was said, each exchange once, and what is recalled is what still holds.

Requests go through the reply side and the recorder into a real turn log, which is away between the phases of a life.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from learning_parts import Bench
from prometheus_client import CollectorRegistry
from random_talkers import Said, Tab, Talker, check_record, messages_of
from turn_logs import DEPLOYMENTS, ManualClock, Process

from extproc import resent_history
from extproc.edge_trust import EdgeTrust
from extproc.exchange import CloseTurn, LeaveOut, OpenTurn, TurnSeed
from extproc.identity import IdentityMode
from extproc.large_bodies import LIGHT
from extproc.observe import Observation
from extproc.recorder import TurnRecorder
from extproc.resent_history import RecordingPolicy
from extproc.server import error_boundary
from memory.model import MemoryStatus, TurnStatus
from memory.runtime.metrics import Metrics

PHASES = 4  # between two of them there is an outage, and every process starts again
OUTAGE_SECONDS = 600.0
TREES_PER_USER = 4
USERS_AT_ONCE = 15
ACTS = 12  # of each user in a phase
EXAMPLES = (("Is the sky blue in the evening?", "Seldom."), ("Is the grass green in the winter?", "Often."))


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resent_history, "PATIENCE_SECONDS", (0.0,))


@dataclass
class Proxy:
    """The reply side and the recorder of one process."""

    clock: ManualClock
    recorder: TurnRecorder
    ids: Iterator[int]

    async def exchange(
        self, user: str, messages: list[dict[str, Any]], answer: str, *, is_failed: bool = False, **options: Any
    ) -> None:
        turn_id = f"turn-{next(self.ids)}"
        watch = Observation(EdgeTrust(IdentityMode.DEVELOPMENT), seed=TurnSeed(turn_id))
        path = (":path", b"/v1/chat/completions")
        watch.on_request_headers([(":method", b"POST"), path, ("x-authz-user-id", user.encode())])
        self.clock.now += 1
        asked = json.dumps({"messages": messages, **options}).encode()
        watch.on_request_body(asked, is_end=True, at=self.clock.now)
        seen = watch.read_request()
        if isinstance(seen, LeaveOut):
            await self.recorder.start(self.recorder._leave_out(seen, LIGHT))
            return
        assert isinstance(seen, OpenTurn)
        begun = self.recorder.open(seen)
        assert begun is not None
        assert await begun is not None
        status = TurnStatus.FAILED if is_failed else TurnStatus.CLOSED
        closing = CloseTurn(turn_id, status, answer, self.clock.now)
        assert await self.recorder.start(self.recorder._close(closing, begun))

    async def chat(self, user: str, said: Said) -> None:
        await self.exchange(user, messages_of(said), said.answer, is_failed=said.is_failed)


@asynccontextmanager
async def recording(process: Process, clock: ManualClock, ids: Iterator[int]) -> AsyncIterator[Proxy]:
    metrics = Metrics(CollectorRegistry())
    recorder = TurnRecorder(process.log, metrics, clock, error_boundary, RecordingPolicy(str, True), None)  # type: ignore[arg-type]
    async with asyncio.timeout(300), recorder:
        yield Proxy(clock, recorder, ids)


def by_size(few: int, *, more: int, on_server: int) -> pytest.MarkDecorator:
    """So many trees or users, each of many requests with their own commits; the large numbers in `make soak`."""
    sizes = [pytest.param("sqlite", few, marks=pytest.mark.full("many requests"))]
    large = (("sqlite", more), ("postgres", on_server))
    sizes += [pytest.param(*one, marks=pytest.mark.soak("many more of them")) for one in large]
    return pytest.mark.parametrize(("adapter", "count"), sizes)


@by_size(60, more=1_000, on_server=400)
async def test_what_was_said_is_recorded_and_what_holds_is_recalled(tmp_path: Path, adapter: str, count: int) -> None:
    kinds: Counter[str] = Counter()
    for first in range(0, count // TREES_PER_USER, USERS_AT_ONCE):
        folder = tmp_path / str(first)
        folder.mkdir()
        bench = Bench(DEPLOYMENTS[adapter](folder), has_sets=False)
        clock, ids = bench.deployment.clock, iter(range(1_000_000))
        talkers = [
            Talker(f"u{number}", random.Random(number), [Tab() for _ in range(TREES_PER_USER)])
            for number in range(first, first + USERS_AT_ONCE)
        ]
        for _ in range(PHASES):
            async with bench.deployment.start() as process:
                async with recording(process, clock, ids) as proxy, asyncio.TaskGroup() as group:
                    for talker in talkers:
                        group.create_task(live(talker, proxy))
                await bench.worker(process).work_off()
                for talker in talkers:
                    await check(bench, process, talker, kinds)
                    talker.live_through_outage()
            clock.now += OUTAGE_SECONDS
        kinds["resumed"] += int(bench.count("memproxy_facts_total", outcome="restored"))
    assert min(kinds[kind] for kind in ("abandoned", "filled_in", "resumed", "failed")) > count / 30


async def live(talker: Talker, proxy: Proxy) -> None:
    for _ in range(2 * TREES_PER_USER):
        await talker.act(proxy)


async def check(bench: Bench, process: Process, talker: Talker, kinds: Counter[str]) -> None:
    record = [turn async for turn in process.log.turns(talker.name)]
    by_words = check_record(talker, record)
    said = talker.sent()
    memories = await bench.memories(talker.name, status=MemoryStatus.ACTIVE)
    holding = [one for one in said if talker.holds(one) and not one.is_failed]
    assert sorted(memory.content for memory in memories) == sorted({one.text for one in holding})
    evidence = Counter(quoted.turn_id for memory in memories for quoted in memory.evidence)
    assert evidence == Counter(by_words[one.text, one.answer].id for one in holding)
    assert set(evidence.values()) <= {1}
    kinds["abandoned"] += sum(not talker.holds(one) for one in said)
    kinds["filled_in"] += sum(turn.status is TurnStatus.FILLED_IN for turn in record)
    kinds["failed"] += sum(one.is_failed for one in said)


# Whichever agent, project or part of the history a client sends, and whatever must not be recorded


@dataclass
class Client:
    """One conversation of one user. `shown`: what the client knows of it; `recorded`: what must be on record."""

    name: str
    chance: random.Random
    shown: list[tuple[str, str]] = field(default_factory=list)
    recorded: list[str] = field(default_factory=list)
    numbers: int = 0

    def news(self) -> tuple[str, str]:
        self.numbers += 1
        said = "Yes." if self.chance.random() < 0.2 else f"I like {self.name}thing{self.numbers} a lot"
        return said, f"Answer {self.numbers} to {self.name}."

    def miss(self) -> None:
        for _ in range(self.chance.randrange(3)):
            self.shown.append(self.news())
            self.recorded.append(self.shown[-1][0])

    async def act(self, proxy: Proxy) -> None:
        chance = self.chance
        said, answer = self.news()
        history = self.shown[-chance.randrange(2, 6) :] if self.numbers > 3 and chance.random() < 0.3 else self.shown
        is_kept = said == "Yes." or chance.random() < 0.8
        scope = chance.choice(({}, {}, {"agent_id": "one"}, {"agent_id": "two"}, {"project_id": "p"}))
        option = {} if is_kept else chance.choice(({"auto_store": False}, {"enabled": False}))
        await self.ask(proxy, history, said, answer, memory_context=scope, memory_config=option)
        self.shown.append((said, answer))
        self.recorded += [said] if is_kept else []

    async def ask_by_examples(self, proxy: Proxy) -> None:
        self.numbers += 1
        self.recorded.append(f"Is {self.name}thing{self.numbers} round?")
        await self.ask(proxy, EXAMPLES, self.recorded[-1], "Sometimes.")

    async def ask(self, proxy: Proxy, history: Sequence[tuple[str, str]], said: str, answer: str, **more: Any) -> None:
        messages = [
            {"role": role, "content": text}
            for exchange in (*history, (said,))
            for role, text in zip(("user", "assistant"), exchange, strict=False)
        ]
        await proxy.exchange(self.name, messages, answer, **more)


@by_size(15, more=100, on_server=40)
async def test_every_exchange_is_recorded_once_and_none_that_may_not(tmp_path: Path, adapter: str, count: int) -> None:
    deployment, ids, filled_in = DEPLOYMENTS[adapter](tmp_path), iter(range(1_000_000)), 0
    clients = [Client(f"u{number}", random.Random(number)) for number in range(count)]
    for phase in range(PHASES):
        async with (
            deployment.start() as process,
            recording(process, deployment.clock, ids) as proxy,
            asyncio.TaskGroup() as group,
        ):
            for client in clients:
                group.create_task(talk(client, proxy, is_last=phase == PHASES - 1))
        if phase < PHASES - 1:
            deployment.clock.now += OUTAGE_SECONDS
            for client in clients:
                client.miss()
    async with deployment.start() as process:
        for client in clients:
            record = [turn async for turn in process.log.turns(client.name)]
            assert Counter(turn.messages[0].content for turn in record) == Counter(client.recorded)
            filled_in += sum(turn.status is TurnStatus.FILLED_IN for turn in record)
    assert filled_in > count


async def talk(client: Client, proxy: Proxy, *, is_last: bool) -> None:
    await client.ask_by_examples(proxy)
    for _ in range(ACTS):
        await client.act(proxy)
    await client.ask_by_examples(proxy)
    if is_last:
        client.recorded.append(f"The end of {client.name}.")
        await client.ask(proxy, client.shown, client.recorded[-1], "Good bye.")
