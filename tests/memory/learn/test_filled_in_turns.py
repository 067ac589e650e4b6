"""A turn that was filled in teaches what was said when it was said: it neither replaces nor forgets what came since."""

from __future__ import annotations

import pytest
from learning_parts import Bench
from turn_logs import START, Process, a_turn

from memory.model import MemoryStatus, Message, SentConversation, SentExchange, TurnStatus


async def say(process: Process, *texts: str, at: float, user: str = "ann") -> None:
    """A finished turn at the end of a conversation of these texts; what is not recorded of it was missed."""
    earlier = tuple(
        SentExchange("/".join(texts[: n + 1]), (Message("user", text),), "ok") for n, text in enumerate(texts[:-1])
    )
    turn = a_turn(f"{user}-{at}", user=user, session=f"new-{at}", text=texts[-1], at=START + at)
    await process.log.trees.open(turn, SentConversation(("/".join(texts),), earlier))
    await process.log.finish(turn.id, status=TurnStatus.CLOSED, answer="ok", answered_at=START + at)


async def active(bench: Bench) -> list[str]:
    return sorted(memory.content for memory in await bench.memories(status=MemoryStatus.ACTIVE))


async def test_it_is_learnt_once(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        worker = bench.worker(process)
        await say(process, "I like tea", at=0)
        await say(process, "I like tea", "I like milk", "I like juice", at=100)
        await say(process, "I like tea", "I like milk", "I like juice", "I like beer", at=200)
        await worker.work_off()
    assert await active(bench) == ["I like beer", "I like juice", "I like milk", "I like tea"]
    assert all(len(memory.evidence) == 1 for memory in await bench.memories())


async def test_an_old_value_does_not_replace_what_was_said_since(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        worker = bench.worker(process)
        await say(process, "My home is Berlin", at=0)
        await say(process, "My home is Rome", at=50)
        await worker.work_off()
        await say(process, "My home is Berlin", "My home is Paris", "I like tea", at=100)
        await worker.work_off()
    assert await active(bench) == ["I like tea", "My home is Rome"]


async def test_it_replaces_what_was_said_before(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        worker = bench.worker(process)
        await say(process, "My home is Berlin", at=0)
        await worker.work_off()
        await say(process, "My home is Berlin", "My home is Paris", "I like tea", at=100)
        await worker.work_off()
    assert await active(bench) == ["I like tea", "My home is Paris"]


@pytest.mark.parametrize("order", ["Forget that I like beer", "Forget everything you know about me"])
async def test_an_old_request_to_forget_deletes_nothing(bench: Bench, order: str) -> None:
    async with bench.deployment.start() as process:
        worker = bench.worker(process)
        await say(process, "I like beer", at=0)
        await say(process, "My home is Rome", at=1)
        await worker.work_off()
        await say(process, "My home is Rome", order, "I like tea", at=100)
        await worker.work_off()
        await say(process, "I like beer", "I like gin", at=101)
        await worker.work_off()
    assert await active(bench) == ["I like beer", "I like gin", "I like tea", "My home is Rome"]


async def test_it_withholds_what_was_missed_before_it(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        worker = bench.worker(process)
        await say(process, "I like tea", at=0)
        await worker.work_off()
        await say(process, "I like tea", "I like beer", "Forget that I like beer", "I like milk", at=100)
        await worker.work_off()
    assert await active(bench) == ["I like milk", "I like tea"]


async def test_what_the_user_has_asked_to_forget_since_does_not_come_back(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        worker = bench.worker(process)
        await say(process, "I like tea", at=0)
        await say(process, "Forget that I like beer", at=50)
        await worker.work_off()
        await say(process, "I like tea", "I like beer", "I like milk", at=100)
        await worker.work_off()
        assert await active(bench) == ["I like milk", "I like tea"]
        await say(process, "I like beer", at=150)
        await worker.work_off()
    assert await active(bench) == ["I like beer", "I like milk", "I like tea"]
