"""Random outages: what was said is recorded once, whichever agent, project or part of the history a client sends.

Users talk to several agents in one history, some clients send only its end, some exchanges must not be recorded, and
some requests carry examples. Requests go through the reply side and the recorder into a real turn log.
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
from prometheus_client import CollectorRegistry
from turn_logs import DEPLOYMENTS, ManualClock, Process

from extproc import sent_again
from extproc.exchange import CloseTurn, LeaveOut, OpenTurn
from extproc.identity import IdentityMode
from extproc.observe import Observation
from extproc.recorder import TurnRecorder
from extproc.sent_again import RecordingPolicy
from extproc.server import contained
from memory.model import TurnStatus
from memory.runtime.metrics import Metrics

USERS = 40
ACTS = 12  # of each user, between two outages
OUTAGES = 3
OUTAGE_SECONDS = 60.0
HEADERS = [(":method", b"POST"), (":path", b"/v1/chat/completions")]
EXAMPLES = (("Is the sky blue in the evening?", "Seldom."), ("Is the grass green in the winter?", "Often."))


@dataclass
class Client:
    """One conversation of one user. `shown`: what the client knows of it; `recorded`: what must be on record."""

    name: str
    chance: random.Random
    shown: list[tuple[str, str]] = field(default_factory=list)
    recorded: list[str] = field(default_factory=list)
    numbers: int = 0

    def exchange(self) -> tuple[str, str]:
        self.numbers += 1
        said = "Yes." if self.chance.random() < 0.2 else f"I like {self.name}thing{self.numbers} a lot"
        return said, f"Answer {self.numbers} to {self.name}."

    def miss(self) -> None:
        for _ in range(self.chance.randrange(3)):
            self.shown.append(self.exchange())
            self.recorded.append(self.shown[-1][0])

    async def act(self, proxy: Proxy) -> None:
        chance = self.chance
        said, answer = self.exchange()
        history = self.shown[-chance.randrange(2, 6) :] if self.numbers > 3 and chance.random() < 0.3 else self.shown
        is_kept = said == "Yes." or chance.random() < 0.8
        scope = chance.choice(({}, {}, {"agent_id": "one"}, {"agent_id": "two"}, {"project_id": "p"}))
        option = {} if is_kept else chance.choice(({"auto_store": False}, {"enabled": False}))
        await proxy.chat(self.name, history, said, answer, scope=scope, option=option)
        self.shown.append((said, answer))
        self.recorded += [said] if is_kept else []

    async def ask_by_examples(self, proxy: Proxy) -> None:
        self.numbers += 1
        said = f"Is {self.name}thing{self.numbers} round?"
        await proxy.chat(self.name, EXAMPLES, said, "Sometimes.", scope={}, option={})
        self.recorded.append(said)


@dataclass
class Proxy:
    """The reply side and the recorder of one process."""

    clock: ManualClock
    process: Process
    recorder: TurnRecorder
    ids: Any

    async def chat(
        self, user: str, history: Any, said: str, answer: str, *, scope: dict[str, str], option: dict[str, bool]
    ) -> None:
        turn_id = f"turn-{next(self.ids)}"
        watch = Observation(turn_id=turn_id, mode=IdentityMode.DEVELOPMENT)
        watch.on_request_headers([*HEADERS, ("x-authz-user-id", user.encode())])
        messages = [
            {"role": role, "content": text}
            for exchange in (*history, (said,))
            for role, text in zip(("user", "assistant"), exchange, strict=False)
        ]
        asked = {"messages": messages, "memory_context": scope, "memory_config": option}
        self.clock.now += 1
        seen = watch.on_request_body(json.dumps(asked).encode(), is_end=True, at=self.clock.now)
        if isinstance(seen, LeaveOut):
            await self.recorder.start(self.recorder._leave_out(seen))
            return
        assert isinstance(seen, OpenTurn)
        begun = self.recorder.open(seen)
        assert begun is not None
        assert await begun is not None
        closing = CloseTurn(turn_id, TurnStatus.CLOSED, answer, self.clock.now)
        assert await self.recorder.start(self.recorder._close(closing, begun))


@pytest.mark.full("random lives with outages")
@pytest.mark.parametrize("adapter", ["redis cluster", "sqlite"])
async def test_every_exchange_is_recorded_once_and_none_that_must_not_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adapter: str
) -> None:
    monkeypatch.setattr(sent_again, "PATIENCE_SECONDS", (0.0,))
    deployment, ids, filled_in = DEPLOYMENTS[adapter](tmp_path), iter(range(1_000_000)), 0
    clients = [Client(f"u{number}", random.Random(number)) for number in range(USERS)]
    for outage in range(OUTAGES + 1):
        async with deployment.start() as process:
            recorder = TurnRecorder(
                process.log, Metrics(CollectorRegistry()), deployment.clock, contained, RecordingPolicy(str), None
            )  # type: ignore[arg-type]
            async with asyncio.timeout(120), recorder, asyncio.TaskGroup() as group:
                proxy = Proxy(deployment.clock, process, recorder, ids)
                for client in clients:
                    group.create_task(live(client, proxy, is_last=outage == OUTAGES))
        if outage < OUTAGES:
            deployment.clock.now += OUTAGE_SECONDS
            for client in clients:
                client.miss()
    async with deployment.start() as process:
        for client in clients:
            record = [turn async for turn in process.log.turns(client.name)]
            assert Counter(turn.messages[0].content for turn in record) == Counter(client.recorded)
            filled_in += sum(turn.status is TurnStatus.FILLED_IN for turn in record)
    assert filled_in > USERS


async def live(client: Client, proxy: Proxy, *, is_last: bool) -> None:
    await client.ask_by_examples(proxy)
    for _ in range(ACTS):
        await client.act(proxy)
    await client.ask_by_examples(proxy)
    if is_last:
        said = f"The end of {client.name}."
        await proxy.chat(client.name, client.shown, said, "Good bye.", scope={}, option={})
        client.recorded.append(said)
