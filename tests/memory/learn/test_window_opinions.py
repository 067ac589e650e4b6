"""What an arbiter was asked outside the lock counts only for the memories that it saw."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from learning_parts import Bench
from turn_logs import START, Process

from memory.erasure import Erasure
from memory.learn.changes.supersession import Verdict
from memory.learn.consolidation import Pair
from memory.learn.extraction import VerbatimLearner
from memory.learn.facts import Fact
from memory.learn.pace import SessionPace
from memory.learn.window import OPINION_ROUNDS_MAX, WindowLearning
from memory.model import Memory, MemoryStatus
from memory.ports import LearnDue

OLD = "I train at Fitline."
NEW = "My gym is on Mill Street."


class EverythingChanges:
    """Says of each memory that it is changed; `meanwhile` runs while it thinks."""

    def __init__(self, meanwhile: Callable[[int], Awaitable[None]]) -> None:
        self.seen: list[int] = []
        self._meanwhile = meanwhile

    async def changed(
        self, facts: Sequence[Fact], known: Sequence[Memory], *, heard: object = None
    ) -> Mapping[Pair, Verdict]:
        self.seen.append(len(known))
        await self._meanwhile(len(self.seen))
        return {(index, memory.id): Verdict() for index in range(len(facts)) for memory in known}


async def learnt(bench: Bench, process: Process, arbiter: EverythingChanges) -> None:
    erasure = Erasure(
        store=bench.store,
        ledger=process.ledger,
        turn_log=process.log,
        notes=process.notes,
        receipts=process.receipts,
        uses=process.uses,
        clock=bench.deployment.clock,
    )
    window = WindowLearning(
        turn_log=process.log,
        ledger=process.ledger,
        store=bench.store,
        embedder=bench.embedder,
        learner=VerbatimLearner(),
        erasure=erasure,
        receipts=process.receipts,
        clock=bench.deployment.clock,
        metrics=bench.metrics,
        pace=SessionPace(200),
        arbiter=arbiter,
    )
    await bench.tell(process, NEW, session="s2")
    lease = await process.log.lease(now=START + 1, seconds=30, due=LearnDue())
    assert lease is not None
    await window.learn(lease)


async def superseded(bench: Bench) -> list[str]:
    return [memory.content for memory in await bench.memories(status=MemoryStatus.SUPERSEDED)]


async def test_an_opinion_counts_where_nobody_wrote_meanwhile(bench: Bench) -> None:
    async def nothing(_: int) -> None: ...

    async with bench.deployment.start() as process:
        await bench.tell(process, OLD)
        await bench.worker(process).work_off()
        arbiter = EverythingChanges(nothing)
        await learnt(bench, process, arbiter)
        assert await superseded(bench) == [OLD]
    assert arbiter.seen == [1]


async def test_it_is_asked_again_when_somebody_wrote_meanwhile(bench: Bench) -> None:
    async with bench.deployment.start() as process:

        async def write(question: int) -> None:
            if question == 1:
                async with process.ledger.write("ann") as held:
                    held.touch(["x"])

        await bench.tell(process, OLD)
        await bench.worker(process).work_off()
        arbiter = EverythingChanges(write)
        await learnt(bench, process, arbiter)
        assert await superseded(bench) == [OLD]
    assert len(arbiter.seen) == 2


async def test_where_somebody_writes_all_the_time_the_rules_decide_alone(bench: Bench) -> None:
    async with bench.deployment.start() as process:

        async def write(_: int) -> None:
            async with process.ledger.write("ann") as held:
                held.touch(["x"])

        await bench.tell(process, OLD)
        await bench.worker(process).work_off()
        arbiter = EverythingChanges(write)
        await learnt(bench, process, arbiter)
        assert await superseded(bench) == []
        assert NEW in await bench.contents()
    assert len(arbiter.seen) == OPINION_ROUNDS_MAX
