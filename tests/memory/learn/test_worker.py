"""The worker on a real turn log: what it learns, what it never learns, and what becomes of a window that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest
from learning_parts import Bench, Faults, Killed
from plain_reader import PlainReader

from memory.learn import plan
from memory.learn.worker import WorkerSettings
from memory.model import Change, ChangeKind, Claim, Turn, TurnStatus
from memory.ports import LearnDue, PairVerdict, StatementPair

BUDGET = "My budget for the Hawaii trip is $10,000"


async def test_a_told_fact_becomes_one_memory_with_its_evidence(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        turn = await bench.tell(process, f"{BUDGET}. Can you plan it?", project="p")
        assert await bench.worker(process).work_off() == 1
        (memory,) = await bench.memories(project="p")
    assert memory.content == f"{BUDGET}."
    assert (memory.evidence[0].quote, memory.evidence[0].turn_id) == (f"{BUDGET}.", turn.id)
    assert (memory.said_at, memory.session_id, memory.project_id) == (turn.at, "s1", "p")
    assert bench.count("memproxy_facts_total", outcome="created") == 1
    assert bench.count("memproxy_windows_total", outcome="learnt") == 1


async def test_the_same_statement_again_updates_and_creates_nothing(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, BUDGET, session="a")
        await bench.worker(process).work_off()
        (before,) = await bench.memories()
        again = await bench.tell(process, f"  {BUDGET.upper()}!! ", session="b")
        bench.deployment.clock.now += 10
        await bench.worker(process).work_off()
        (after,) = await bench.memories()
    assert after.id == before.id
    assert after.updated_at > before.updated_at
    assert after.said_at == again.at
    assert after.confidence > before.confidence
    assert [e.turn_id for e in after.evidence] == ["turn-1", "turn-2"]


async def test_the_same_statement_of_another_user_or_project_is_another_memory(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, BUDGET, user="ann", project="p")
        await bench.tell(process, BUDGET, user="ann", project="q")
        await bench.tell(process, BUDGET, user="bob", project="p")
        await bench.worker(process).work_off()
        assert len(await bench.memories("ann", project="p")) == 1
        assert len(await bench.memories("ann", project="q")) == 1
        assert len(await bench.memories("bob", project="p")) == 1


@pytest.mark.parametrize("status", [TurnStatus.FAILED, TurnStatus.ABORTED])
async def test_a_failed_or_aborted_turn_teaches_nothing(bench: Bench, status: TurnStatus) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, BUDGET, status=status)
        await bench.worker(process).work_off()
        assert await bench.memories() == []


async def test_a_turn_that_a_dead_process_left_open_is_learnt_all_the_same(bench: Bench) -> None:
    async with bench.deployment.start() as dying:
        turn = await bench.tell(dying, "hello", session="warm-up")
        told = type(turn)(
            id="open-one", scope=turn.scope, at=turn.at, messages=(type(turn.messages[0])("user", BUDGET),)
        )
        await dying.log.open(told)
    async with bench.deployment.start() as process:
        until = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.worker(process).run(until))
            await _eventually(bench, 1)
            until.set()
    assert [m.content for m in await bench.memories()] == [BUDGET]


async def test_a_closed_turn_is_learnt_within_a_second(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        until = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.worker(process).run(until))
            await asyncio.sleep(0.2)
            await bench.tell(process, BUDGET)
            await _eventually(bench, 1)
            until.set()


async def test_windows_of_several_users_are_learnt_at_the_same_time_but_no_more_than_allowed(bench: Bench) -> None:
    model = _Slow()
    settings = WorkerSettings(windows_at_once=3)
    async with bench.deployment.start() as process:
        for number in range(7):
            await bench.tell(process, BUDGET, user=f"user-{number}")
        until = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.worker(process, model=model, settings=settings).run(until))
            while model.finished < 7:
                await asyncio.sleep(0.01)
            until.set()
    assert model.most_at_once == 3


async def test_told_to_stop_it_finishes_what_is_under_way(bench: Bench) -> None:
    model = _Slow()
    async with bench.deployment.start() as process:
        await bench.tell(process, BUDGET)
        until = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.worker(process, model=model).run(until))
            while not model.running:
                await asyncio.sleep(0.01)
            until.set()
        assert model.finished == 1
        assert await process.log.lease(now=bench.deployment.clock() + 1e6, seconds=1, due=LearnDue()) is None


async def test_the_lease_is_extended_while_the_model_thinks(bench: Bench) -> None:
    faults = Faults()
    settings = WorkerSettings(lease_seconds=0.06)
    async with bench.deployment.start() as process:
        await bench.tell(process, BUDGET)
        await bench.worker(process, faults=faults, model=_Slow(), settings=settings).work_off()
    assert faults.calls.count("extend") >= 2


async def test_a_lost_lease_stops_the_work_before_anything_is_stored(bench: Bench) -> None:
    settings = WorkerSettings(lease_seconds=0.06)
    async with bench.deployment.start() as process, bench.deployment.start() as other:
        await bench.tell(process, BUDGET)

        async def take_over() -> None:
            bench.deployment.clock.now += 1
            lease = await other.log.lease(now=bench.deployment.clock(), seconds=100, due=LearnDue())
            assert lease is not None

        await bench.worker(process, model=_Slow(meanwhile=take_over), settings=settings).work_off()
        assert await bench.memories() == []
    assert bench.count("memproxy_windows_total", outcome="lost") == 1


async def test_a_fault_of_ours_is_counted_retried_and_buried_and_others_go_on(bench: Bench) -> None:
    settings = WorkerSettings(attempts_max=2, retry_base_seconds=1.0)
    async with bench.deployment.start() as process:
        await bench.tell(process, BUDGET, user="ann")
        await bench.tell(process, BUDGET, user="bob")
        worker = bench.worker(process, model=_FaultyFor("ann"), settings=settings)
        for _ in range(5):
            await worker.work_off()
            bench.deployment.clock.now += 10
        (letter,) = await process.log.dead_letters(limit=5)
        assert (letter.user_id, letter.reason) == ("ann", "unexpected RuntimeError")
        assert len(await bench.memories("bob")) == 1
    assert bench.count("memproxy_windows_total", outcome="buried") == 1


async def test_a_stored_plan_is_applied_as_it_was_without_asking_a_reader_again(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, BUDGET)
        crashed = bench.worker(process, faults=Faults(name="apply", error=Killed()))
        with pytest.raises(Killed):
            await crashed.work_off()
        assert await bench.memories() == []
        bench.deployment.clock.now += 1_000
        await bench.worker(process, reader=_NeverAsked(), model=_NeverAsked()).work_off()
        assert [m.content for m in await bench.memories()] == [BUDGET]


async def test_a_plan_brings_nothing_back_that_was_forgotten_meanwhile(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, "I live in Leeds. My cat is called Tom.")
        crashed = bench.worker(process, faults=Faults(name="apply", error=Killed()))
        with pytest.raises(Killed):
            await crashed.work_off()
        bench.deployment.clock.now += 1_000
        lease = await process.log.lease(now=bench.deployment.clock(), seconds=1, due=LearnDue())
        assert lease is not None
        assert lease.plan is not None
        forgotten = next(c.memory.id for c in plan.decode(lease.plan).changes if "Leeds" in c.memory.content)
        async with process.ledger.write("ann") as held:
            await held.forget([forgotten])
        bench.deployment.clock.now += 1_000
        await bench.worker(process).work_off()
        assert await bench.contents() == ["My cat is called Tom."]


async def test_a_plan_does_not_undo_what_was_written_after_it(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, BUDGET)
        crashed = bench.worker(process, faults=Faults(name="apply", error=Killed(), is_after=True))
        with pytest.raises(Killed):
            await crashed.work_off()
        (row,) = await bench.memories()
        edited = replace(row, content="My budget is my secret", updated_at=row.updated_at + 5)
        vectors = await bench.embedder.embed([edited.content], is_urgent=False)
        await bench.store.apply("ann", [Change(ChangeKind.UPDATE, edited)], vectors)
        bench.deployment.clock.now += 1_000
        await bench.worker(process).work_off()
        assert await bench.contents() == ["My budget is my secret"]


async def test_a_plan_of_another_version_is_kept_for_a_human(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, BUDGET)
        lease = await process.log.lease(now=bench.deployment.clock(), seconds=1, due=LearnDue())
        assert lease is not None
        await process.log.save_plan(lease, b'{"version": 99, "changes": []}')
        bench.deployment.clock.now += 100
        await bench.worker(process).work_off()
        (letter,) = await process.log.dead_letters(limit=5)
        assert "version" in letter.reason
        assert await bench.memories() == []


async def test_two_sessions_of_one_user_learning_at_once_lose_no_update(bench: Bench) -> None:
    async with bench.deployment.start() as one, bench.deployment.start() as two:
        for number in range(12):
            await bench.tell(one, BUDGET, session=f"s{number % 2}")
        until = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.worker(one).run(until))
            group.create_task(bench.worker(two).run(until))
            while (await one.log.backlog("ann", opened_before=1e12)).pending:
                await asyncio.sleep(0.02)
            until.set()
        (memory,) = await bench.memories()
        assert memory.evidence[0].turn_id == "turn-1"
        assert len(memory.evidence) == 5


async def test_a_bare_yes_learns_what_the_assistant_asked_and_says_whose_words_they_are(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        asked = await bench.tell(process, "Plan my way home", answer="Do you still cycle along the canal?")
        await bench.tell(process, "yes")
        await bench.worker(process).work_off()
        (memory,) = await bench.memories()
        evidence = memory.evidence[0]
        assert (evidence.quote, evidence.role, evidence.turn_id) == (asked.answer, "assistant", asked.id)


async def test_an_assistant_that_restates_what_it_was_told_teaches_nothing(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, BUDGET, answer=f"{BUDGET}. Is your budget for the Hawaii trip $10,000?")
        for reply in ("yes", "ok thanks", f"{BUDGET}", "great") * 5:
            await bench.tell(process, reply, answer=f"{BUDGET}. Is your budget for the Hawaii trip $10,000?")
        await bench.worker(process).work_off()
        assert [m.content for m in await bench.memories()] == [BUDGET]


async def test_memory_ids_are_the_same_at_every_attempt_and_differ_between_users(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        for user in ("ann", "bob"):
            await bench.tell(process, BUDGET, user=user, session="s")
        await bench.worker(process).work_off()
        (ann,), (bob,) = await bench.memories("ann"), await bench.memories("bob")
    assert ann.id != bob.id


async def _eventually(bench: Bench, number: int) -> None:
    async with asyncio.timeout(5):
        while len(await bench.memories()) < number:
            await asyncio.sleep(0.01)


class _Slow(PlainReader):
    """Takes a while, finds nothing, and knows how many windows it read at once."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__()
        self.running = 0
        self.most_at_once = 0
        self.finished = 0
        self._meanwhile = meanwhile

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        if self._meanwhile is not None:
            await self._meanwhile()
        await asyncio.sleep(0.1)
        self.running -= 1
        self.finished += 1
        return []


class _NeverAsked(PlainReader):
    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        raise AssertionError("a window with a stored plan was read again")

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        raise AssertionError("the pairs of a stored plan were related again")


class _FaultyFor(PlainReader):
    def __init__(self, user: str) -> None:
        super().__init__()
        self._user = user

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        if turns[0].scope.user_id == self._user:
            raise RuntimeError("content that must not be logged")
        return await super().read(turns, context=context)
