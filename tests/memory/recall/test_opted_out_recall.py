"""A user who has opted out gets no note, and neither does anybody of whom it cannot be known in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from recall_rig import NOW, Rig, request_of, rigged

from memory.adapters.sqlite.opt_outs import SqliteOptOuts
from memory.chat.completions import ChatRequest
from memory.errors import Unavailable
from memory.model import RecallStatus, Scope
from memory.ports import NoOptOuts
from memory.recall.compacted import ChatRecall
from memory.recall.opted_out import ConsentingRecall
from memory.recall.signals.upstream import NO_SIGNALS, UpstreamSignals
from memory.recall.trace import RecallOutcome

QUESTION = "Where is my kayak stored?"


class Asked(NoOptOuts):
    """Answers as a test decides."""

    def __init__(self, answer: Callable[[], Awaitable[float | None]]) -> None:
        self._answer = answer

    async def since(self, user_id: str) -> float | None:
        return await self._answer()


class Told:
    """Remembers how long it was told that a request had waited."""

    def __init__(self, recall: ChatRecall) -> None:
        self._recall = recall
        self.waited: float | None = None

    async def recall(
        self, scope: Scope, request: ChatRequest, upstream: UpstreamSignals, *, waited: float = 0.0
    ) -> RecallOutcome:
        self.waited = waited
        return await self._recall.recall(scope, request, upstream, waited=waited)


async def recalled(rig: Rig, opt_outs: NoOptOuts | SqliteOptOuts) -> RecallOutcome:
    recall = ConsentingRecall(rig.recall, opt_outs, rig.metrics)
    return await recall.recall(Scope("u"), request_of(QUESTION), NO_SIGNALS)


async def test_an_opted_out_user_gets_no_note_until_they_opt_in(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        assert (await recalled(rig, rig.opt_outs)).status is RecallStatus.USED
        await rig.opt_outs.set("u", at=NOW)
        rig.embedder.calls = 0
        outcome = await recalled(rig, rig.opt_outs)
        assert (outcome.status, outcome.reason, outcome.notes) == (RecallStatus.DISABLED, "opted_out", ())
        assert (outcome.receipt_id, rig.embedder.calls) == ("", 0)
        labels = {"status": "disabled", "reason": "opted_out"}
        assert rig.metrics.registry.get_sample_value("memproxy_requests_total", labels) == 1.0
        await rig.opt_outs.clear("u")
        assert (await recalled(rig, rig.opt_outs)).status is RecallStatus.USED


async def down() -> float | None:
    raise Unavailable("turn_log", "it is down")


async def hanging() -> float | None:
    await asyncio.sleep(60)
    return None


@pytest.mark.parametrize("answer", [down, hanging])
async def test_in_doubt_there_is_no_note_and_no_long_wait(
    tmp_path: Path, answer: Callable[[], Awaitable[float | None]]
) -> None:
    async with rigged(tmp_path) as rig, asyncio.timeout(5):
        outcome = await recalled(rig, Asked(answer))
    assert (outcome.status, outcome.reason, outcome.notes) == (RecallStatus.UNAVAILABLE, "opt_out_unknown", ())


@pytest.mark.soak("judges time")
async def test_whoever_comes_back_soon_is_waited_for_beyond_the_deadline(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    back_at = loop.time() + 0.1

    async def restarting() -> float | None:
        if loop.time() < back_at:
            raise Unavailable("turn_log", "it starts again")
        return None

    async with rigged(tmp_path) as rig:
        told = Told(rig.recall)
        outcome = await ConsentingRecall(told, Asked(restarting), rig.metrics).recall(
            Scope("u"), request_of(QUESTION), NO_SIGNALS
        )
        assert outcome.status is RecallStatus.USED
        assert told.waited is not None
        assert told.waited < 0.05


@pytest.mark.soak("judges time")
async def test_whoever_stays_away_delays_only_those_who_came_first(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with rigged(tmp_path) as rig:
        recall = ConsentingRecall(rig.recall, Asked(down), rig.metrics)
        seconds: list[float] = []
        for _ in range(3):
            began_at = loop.time()
            await recall.recall(Scope("u"), request_of(QUESTION), NO_SIGNALS)
            seconds.append(loop.time() - began_at)
    assert 0.25 < seconds[0] < 5
    assert max(seconds[1:]) < 0.2


async def test_the_look_takes_its_time_from_the_deadline_of_recall(tmp_path: Path) -> None:
    async def slow() -> float | None:
        await asyncio.sleep(0.03)
        return None

    async with rigged(tmp_path) as rig:
        told = Told(rig.recall)
        await ConsentingRecall(told, Asked(slow), rig.metrics).recall(Scope("u"), request_of(QUESTION), NO_SIGNALS)
        assert told.waited is not None
        assert 0.03 <= told.waited < 5
        late = await rig.recall.recall(Scope("u"), request_of(QUESTION), NO_SIGNALS, waited=60.0)
        assert (late.status, late.reason, late.notes) == (RecallStatus.UNAVAILABLE, "busy", ())
