"""What a user asks of memory is done while the model is away: rules extract those windows. A scripted real server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from learning_parts import Bench
from scripted_model import ScriptedModel, running_model, yes
from turn_logs import Process

from memory.learn.llm.model_learner import Asking, DraftLearner, JudgeLearner, ModelArbiter
from memory.learn.worker import Worker, WorkerSettings
from memory.model import MemoryStatus
from memory.ports import LearnDue

ASKING = Asking("scripted", seconds=5.0)
SETTINGS = WorkerSettings(due=LearnDue(batch_turns_max=10, idle_seconds=30.0, turns_at_once=10), attempts_max=2)
SCHOOL = "I teach chemistry at a night school."  # rules are not sure of it: a judging model is asked
HOUR = 3_600.0


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedModel]:
    async with running_model(keep=yes) as running:
        yield running


def at_work(bench: Bench, process: Process, scripted: ScriptedModel, kind: type[JudgeLearner | DraftLearner]) -> Worker:
    learner = kind(scripted.model, ASKING, metrics=bench.metrics)
    arbiter = ModelArbiter(scripted.model, ASKING, pairs_max=4)
    return bench.worker(process, learner=learner, arbiter=arbiter, settings=SETTINGS)


async def silence(bench: Bench, worker: Worker) -> None:
    """The session falls silent and is due."""
    bench.deployment.clock.now += 40.0
    await worker.work_off()


@pytest.mark.parametrize("kind", [JudgeLearner, DraftLearner])
@pytest.mark.parametrize(
    ("told", "order"),
    [
        ("My cat is called Tom.", "Please forget that my cat is called Tom."),
        ("My cat is called Tom.", "Forget what I told you about my cat Tom."),
        ("我的猫叫米粒。", "请忘掉我的猫叫米粒这件事"),
        ("Meine Katze heißt Tom.", "Vergiss bitte, dass meine Katze Tom heißt."),
        ("Mi gata se llama Tom.", "Olvida que mi gata se llama Tom."),
    ],
)
async def test_an_order_to_forget_is_carried_out_while_the_model_is_away(
    bench: Bench, scripted: ScriptedModel, kind: type[JudgeLearner | DraftLearner], told: str, order: str
) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, f"{told} I live in Leeds.", session="before")
        await bench.worker(process).work_off()
        assert told in await bench.contents()
        scripted.server.status = 503
        worker = at_work(bench, process, scripted, kind)
        await bench.tell(process, SCHOOL)
        await silence(bench, worker)
        assert (await process.log.backlog("ann", opened_before=1e12)).waiting == 1
        await bench.tell(process, order)
        await worker.work_off()
        assert told not in await bench.contents()
        assert "I live in Leeds." in await bench.contents()
        assert (await process.log.backlog("ann", opened_before=1e12)).waiting == 1  # the talk waits on
        scripted.server.status = 200
        bench.deployment.clock.now += HOUR
        await worker.work_off()
        assert (await process.log.backlog("ann", opened_before=1e12)).pending == 0
    assert told not in await bench.contents()


@pytest.mark.parametrize("kind", [JudgeLearner, DraftLearner])
@pytest.mark.parametrize("trouble", [b"<html>junk</html>", None])
async def test_what_is_to_be_remembered_is_known_at_once_whatever_is_the_matter_with_the_model(
    bench: Bench, scripted: ScriptedModel, kind: type[JudgeLearner | DraftLearner], trouble: bytes | None
) -> None:
    scripted.server.body, scripted.server.status = trouble, 200 if trouble else 503
    async with bench.deployment.start() as process:
        worker = at_work(bench, process, scripted, kind)
        await bench.tell(process, f"{SCHOOL} We keep bees behind the shed.")
        await bench.tell(process, "Remember that my locker is number 41.")
        await worker.work_off()
    contents = await bench.contents()
    assert any("locker is number 41" in content for content in contents)
    assert SCHOOL in contents  # of the same window: rules would keep it
    assert bench.count("memproxy_model_shortfalls_total", of="window") == 1


@pytest.mark.parametrize(
    "said",
    [
        "I always forget my keys at work on Mondays.",
        "My grandmother taught me to remember birthdays with a calendar.",
        "我老是忘记带钥匙去上班",
        "Ich vergesse montags immer meine Schlüssel in der Firma.",
        "No, that is wrong, my sister lives in Bergen with her family.",
    ],
)
async def test_what_only_sounds_like_it_waits_for_the_model(bench: Bench, scripted: ScriptedModel, said: str) -> None:
    scripted.server.status = 503
    async with bench.deployment.start() as process:
        worker = at_work(bench, process, scripted, DraftLearner)
        await bench.tell(process, said)
        await silence(bench, worker)
        assert (await process.log.backlog("ann", opened_before=1e12)).waiting == 1
    assert await bench.contents() == []
    assert bench.count("memproxy_model_shortfalls_total", of="window") == 0


async def test_forget_what_i_just_said_reaches_what_waits_for_the_model(bench: Bench, scripted: ScriptedModel) -> None:
    scripted.server.status = 503
    async with bench.deployment.start() as process:
        worker = at_work(bench, process, scripted, JudgeLearner)
        await bench.tell(process, f"I live in Leeds. {SCHOOL}")
        await bench.tell(process, "My cat is called Tom.")
        await silence(bench, worker)
        await bench.tell(process, "Forget what I just said.")
        await worker.work_off()
        scripted.server.status = 200
        bench.deployment.clock.now += HOUR
        await worker.work_off()
        assert (await process.log.backlog("ann", opened_before=1e12)).pending == 0
    assert await bench.contents() == sorted(["I live in Leeds.", SCHOOL])


async def test_what_waits_for_the_model_heeds_what_was_asked_to_be_forgotten_meanwhile(
    bench: Bench, scripted: ScriptedModel
) -> None:
    scripted.server.status = 503
    async with bench.deployment.start() as process:
        worker = at_work(bench, process, scripted, JudgeLearner)
        await bench.tell(process, f"My cat is called Tom. {SCHOOL}")
        await silence(bench, worker)
        await bench.tell(process, "Please forget that my cat is called Tom. Remember that my locker is number 41.")
        await worker.work_off()
        assert not any("Tom" in content for content in await bench.contents())
        scripted.server.status = 200
        bench.deployment.clock.now += HOUR
        await worker.work_off()
        assert (await process.log.backlog("ann", opened_before=1e12)).pending == 0
    contents = await bench.contents()
    assert SCHOOL in contents
    assert any("locker is number 41" in content for content in contents)
    assert not any("Tom" in content for content in contents)


async def test_an_order_does_not_wait_for_the_word_on_a_pair(bench: Bench, scripted: ScriptedModel) -> None:
    """Rules extract all of it; only the arbiter is asked, and is away."""
    old, new = "My gym is on Mill Street.", "My gym is by the station."
    async with bench.deployment.start() as process:
        await bench.tell(process, old, session="before")
        await bench.worker(process).work_off()
        scripted.server.status = 503
        worker = at_work(bench, process, scripted, JudgeLearner)
        await bench.tell(process, f"Remember: {new[0].lower()}{new[1:]}")
        await worker.work_off()
    assert any("Older" in question for question in scripted.questions)
    active = [memory.content for memory in await bench.memories(status=MemoryStatus.ACTIVE)]
    assert len(active) == 2
    assert any("by the station" in content for content in active)


async def test_a_repeat_of_a_window_that_rules_extracted_says_the_same(bench: Bench, scripted: ScriptedModel) -> None:
    """Once it is decided, the model that is back does not change what a half-done window holds."""
    scripted.server.status = 503
    async with bench.deployment.start() as process:
        await bench.tell(process, f"{SCHOOL} Remember that my locker is number 41.")
        lease = await process.log.lease(now=bench.deployment.clock(), seconds=1, due=LearnDue())
        assert lease is not None
        await process.log.retry_at(lease, due_at=bench.deployment.clock(), reason="only fixed")
        for _ in range(2):
            await at_work(bench, process, scripted, JudgeLearner).work_off()
            scripted.server.status = 200
            bench.deployment.clock.now += HOUR
    assert len(await bench.contents()) == 2
