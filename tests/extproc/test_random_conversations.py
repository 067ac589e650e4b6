"""Random trees of edits: the record is what was said, and what is recalled is what still holds.

Requests of `random_talkers` go through the reply side and the recorder into a real turn log, learning through a real
worker with a reader without a model.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from learning_parts import Bench
from random_talkers import Said, Tab, Talker, check_record, messages_of
from turn_logs import DEPLOYMENTS, START, Process

from extproc import sent_again
from extproc.exchange import CloseTurn, OpenTurn
from extproc.identity import IdentityMode
from extproc.observe import Observation
from extproc.recorder import TurnRecorder
from extproc.sent_again import RecordingPolicy
from extproc.server import contained
from memory.model import MemoryStatus, TurnStatus
from memory.ports import TurnLog

LIVES = [
    pytest.param("sqlite", 100, marks=pytest.mark.full("trees of about ten requests, each with its own commit")),
    pytest.param("sqlite", 1_000, marks=pytest.mark.soak("a thousand trees")),
    pytest.param("redis", 400, marks=pytest.mark.soak("four hundred trees")),
]
TREES_PER_USER = 4
USERS_AT_ONCE = 25
PHASES = 4  # after each of them we learn, there is an outage, and every process starts again
OUTAGE_SECONDS = 600.0
ACTS_PER_PHASE = 2
HEADERS = [(":method", b"POST"), (":path", b"/v1/chat/completions")]


@dataclass
class Proxy:
    """The reply side and the recorder of one process."""

    bench: Bench
    recorder: TurnRecorder
    log: TurnLog
    ids: Any

    async def chat(self, user: str, said: Said) -> None:
        turn_id = f"turn-{next(self.ids)}"
        watch = Observation(turn_id=turn_id, mode=IdentityMode.DEVELOPMENT)
        watch.on_request_headers([*HEADERS, ("x-authz-user-id", user.encode())])
        body = json.dumps({"messages": messages_of(said)}).encode()
        self.bench.deployment.clock.now += 1
        opening = watch.on_request_body(body, is_end=True, at=self.bench.deployment.clock.now)
        assert isinstance(opening, OpenTurn)
        begun = self.recorder.open(opening)
        assert begun is not None
        link = await begun
        assert link is not None
        status = TurnStatus.FAILED if said.is_failed else TurnStatus.CLOSED
        self.recorder.close(CloseTurn(turn_id, status, said.answer, START), after=begun)
        while TurnStatus.OPENED in [turn.status async for turn in self.log.turns(user, session_id=link.session_id)]:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(("adapter", "trees"), LIVES)
async def test_the_record_is_what_was_said_and_only_the_branches_that_hold_are_recalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adapter: str, trees: int
) -> None:
    monkeypatch.setattr(sent_again, "PATIENCE_SECONDS", (0.0,))
    kinds: Counter[str] = Counter()
    for first in range(0, trees // TREES_PER_USER, USERS_AT_ONCE):
        folder = tmp_path / str(first)
        folder.mkdir()
        bench = Bench(DEPLOYMENTS[adapter](folder), has_sets=False)
        talkers = [
            Talker(f"u{number}", random.Random(number), [Tab() for _ in range(TREES_PER_USER)])
            for number in range(first, first + USERS_AT_ONCE)
        ]
        ids = iter(range(1_000_000))
        for _ in range(PHASES):
            async with bench.deployment.start() as process:
                await phase(bench, process, talkers, ids)
                await bench.worker(process).work_off()
                for talker in talkers:
                    await check(bench, process, talker, kinds)
                    talker.live_through_outage()
            bench.deployment.clock.now += OUTAGE_SECONDS
        kinds["resumed"] += int(bench.count("memproxy_facts_total", outcome="restored"))
    assert min(kinds[kind] for kind in ("abandoned", "filled_in", "resumed", "failed")) > trees / 30


async def phase(bench: Bench, process: Process, talkers: list[Talker], ids: Any) -> None:
    recorder = TurnRecorder(
        process.log, bench.metrics, bench.deployment.clock, contained, RecordingPolicy(str, True), None
    )  # type: ignore[arg-type]
    async with asyncio.timeout(300), recorder:
        proxy = Proxy(bench, recorder, process.log, ids)

        async def live(talker: Talker) -> None:
            for _ in range(ACTS_PER_PHASE * TREES_PER_USER):
                await talker.act(proxy)

        async with asyncio.TaskGroup() as group:
            for talker in talkers:
                group.create_task(live(talker))


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
