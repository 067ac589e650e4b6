"""What a user ordered holds in the system that imports their export, whenever a worker comes by meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from absent_stores import memory_bank
from learning_parts import Bench, Faults
from plain_reader import FramingReader
from token_counts import counted_tokens
from turn_logs import Process, sqlite_deployment

from memory.learn.worker import WorkerSettings
from memory.model import TurnStatus
from memory.service.profiles import ProfileService
from memory.service.requests import Intake
from memory.service.service_parts import ServiceParts
from memory.service.shared_projects import SharedProjects
from memory.service.transfers import MemoryTransfers

PRIVATE = "Do not store this conversation."


def transfers(bench: Bench, process: Process) -> MemoryTransfers:
    intake = Intake(bench.deployment.clock, lambda: "new", str, counted_tokens())
    memories = memory_bank(bench.store, process.ledger, bench.embedder)
    parts = ServiceParts(memories, process.log, process.stores, intake)
    return MemoryTransfers(parts, ProfileService(parts), SharedProjects(parts))


async def moved(bench: Bench, process: Process, target: Bench, to: Process, *, user: str) -> None:
    """All of ann's, a line in each call, and a worker comes by after each."""
    header, *lines = [line async for line in transfers(bench, process).export("ann")]

    async def call(line: bytes) -> AsyncIterator[bytes]:
        for one in (header, line):
            yield one

    for line in lines:
        await transfers(target, to).load(user, call(line))
        await target.worker(to, reader=FramingReader()).work_off()


@pytest.fixture
def target(tmp_path: Path) -> Bench:
    (tmp_path / "elsewhere").mkdir()
    return Bench(sqlite_deployment(tmp_path / "elsewhere"))


@pytest.mark.parametrize("user", ["ann", "bob"])
async def test_a_conversation_that_is_not_to_be_kept_is_not_learnt_there_either(
    bench: Bench, process: Process, target: Bench, user: str
) -> None:
    await bench.learn(process, "I live in Leeds.")
    await bench.learn(process, "I own a canoe.", PRIVATE, session="s2")
    async with target.deployment.start() as to:
        await moved(bench, process, target, to, user=user)
        await target.learn(to, "My locker number is 42.", session="s2", user=user)
        await target.learn(to, "I play chess.", session="s3", user=user)
    assert await target.contents(user) == ["I live in Leeds.", "I play chess."]


async def given_up(bench: Bench, process: Process, said: str, *, session: str) -> None:
    """A turn that is still due, in a window that failed."""
    await bench.tell(process, said, session=session)
    settings, fault = WorkerSettings(attempts_max=1), Faults(name="context", error=RuntimeError("a test"))
    await bench.worker(process, faults=fault, settings=settings).work_off()
    assert len(await process.log.dead_letters(limit=9)) == 1


@pytest.mark.parametrize("user", ["ann", "bob"])
@pytest.mark.parametrize("order", ["Forget my locker number.", PRIVATE])
async def test_what_was_forgotten_does_not_return_with_a_turn_that_is_still_due(
    bench: Bench, process: Process, target: Bench, user: str, order: str
) -> None:
    await given_up(bench, process, "My locker number is 9876.", session="s2")
    await bench.learn(process, order, session="s2")
    await bench.tell(process, "I live in Leeds.", session="s3")
    async with target.deployment.start() as to:
        await moved(bench, process, target, to, user=user)
        assert [turn.scope.session_id async for turn in to.log.turns(user)] == ["s2", "s2", "s3"]
    assert await target.contents(user) == ["I live in Leeds."]


async def test_read_again_an_order_in_another_s_words_still_orders_nothing(
    bench: Bench, process: Process, target: Bench
) -> None:
    await bench.learn(process, "My locker number is 42.")
    await bench.tell(process, f"Forget my locker number. Hark. {PRIVATE}")
    await bench.worker(process, reader=FramingReader()).work_off()
    assert await bench.contents() == []
    async with target.deployment.start() as to:
        await moved(bench, process, target, to, user="ann")
        await target.tell(to, "I play chess.")
        await target.worker(to, reader=FramingReader()).work_off()
    assert await target.contents() == ["I play chess."]


async def test_read_again_what_was_filled_in_still_orders_nothing_outside_its_conversation(
    bench: Bench, process: Process, target: Bench
) -> None:
    await given_up(bench, process, "My locker number is 9876.", session="s1")
    said = f"Forget my locker number. {PRIVATE}"
    await bench.learn(process, said, session="s2", status=TurnStatus.FILLED_IN)
    async with target.deployment.start() as to:
        await moved(bench, process, target, to, user="ann")
        await target.learn(to, "I own a canoe.", session="s2")
    assert await target.contents() == ["My locker number is 9876."]
