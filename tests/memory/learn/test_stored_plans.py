"""A stored plan: applied as it is, made again of the same claims where somebody else wrote meanwhile, and not applied
to what was forgotten. Nobody is asked again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claims import claim
from frozen_parts import Frozen
from learning_parts import Bench, Faults, Killed
from memory_rows import memory
from plain_reader import PlainReader, moves
from suspensions import EVERY, crash_points
from turn_logs import Process, lease_at, leased, sqlite_deployment

from memory.errors import Unavailable
from memory.learn import plan
from memory.learn.plan_inputs import PlanInputs, progress_of
from memory.learn.worker import WorkerSettings
from memory.model import Act, Change, ChangeKind, Claim, Memory, Role, Turn
from memory.ports import PairVerdict, StatementPair

LATER_SECONDS = 100.0
SISTER = "My sister lives in Oslo."
MONDAY, FRIDAY = "My dentist appointment is on Monday.", "My dentist appointment is on Friday."

PARIS, ROME, BERLIN = (f"I live in {city}." for city in ("Paris", "Rome", "Berlin"))
CAT, BOAT = "My cat is called Tom.", "My boat is called Nereid."
# What is known, what waits, what somebody says meanwhile; what stands in the end.
OVERTAKEN = {
    "the later home": (PARIS, ROME, BERLIN, [BERLIN]),
    "the same again": (CAT, ROME, "I live in Rome!", [ROME, CAT]),
    "something else": (PARIS, ROME, BOAT, [ROME, BOAT]),
}


class TalksOnce(PlainReader):
    """As a model is: what it says the second time about the same turns is something else."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        assert turns[0].id not in self.asked, "asked twice about the same turns"
        self.asked.append(turns[0].id)
        return await super().read(turns, context=context)


async def _known_and_waiting(bench: Bench, process: Process, known: str, waiting: str) -> None:
    await bench.learn(process, known, session="s0")
    await bench.tell(process, waiting, session="s1")


async def _said_meanwhile(bench: Bench, text: str) -> None:
    """Another session's turn is learnt some time later, before the one that waits is tried again."""
    async with bench.later(LATER_SECONDS) as process:
        lease = await lease_at(process.log, bench.deployment.clock.now)
        if lease is not None:
            await process.log.retry_at(lease, due_at=bench.deployment.clock.now + LATER_SECONDS / 2, reason="waits")
        await bench.learn(process, text, session="s2")


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("case", OVERTAKEN)
async def test_wherever_a_window_broke_off_what_was_said_meanwhile_is_heeded(
    tmp_path: Path, case: str, every: int, *, is_after: bool
) -> None:
    known, waiting, meanwhile, expected = OVERTAKEN[case]
    for number in crash_points(every):
        bench, model = Bench(sqlite_deployment(tmp_path / str(number))), TalksOnce()
        faults = Faults(number=number, error=Killed(), is_after=is_after)
        async with bench.deployment.start() as dying:
            await _known_and_waiting(bench, dying, known, waiting)
            with suppress(Killed):
                await bench.worker(dying, faults=faults, model=TalksOnce()).work_off()
        if len(faults.calls) < number:
            break
        await _said_meanwhile(bench, meanwhile)
        for _ in range(2):
            async with bench.later(LATER_SECONDS) as survivor:
                await bench.worker(survivor, model=model).work_off()
                assert (await survivor.log.backlog("ann", opened_before=1e12)).pending == 0
        found = [content.replace("!", ".") for content in await bench.active()]
        assert sorted(found) == sorted(expected), f"broken off at call {number}"
        assert len(await bench.memories()) == len({memory.content for memory in await bench.memories()})
    assert number > 8


@pytest.mark.parametrize("every", EVERY)
async def test_making_it_again_can_be_broken_off_anywhere_itself(tmp_path: Path, every: int) -> None:
    known, waiting, meanwhile, expected = OVERTAKEN["the later home"]
    for number in crash_points(every):
        bench, faults = Bench(sqlite_deployment(tmp_path / str(number))), Faults(number=number, error=Killed())
        async with bench.deployment.start() as process:
            await _known_and_waiting(bench, process, known, waiting)
            await _killed_at_apply(bench, process)
        await _said_meanwhile(bench, meanwhile)
        for one in (faults, None):
            async with bench.later(LATER_SECONDS) as process:
                with suppress(Killed):
                    await bench.worker(process, faults=one, reader=_Never(), model=_Never()).work_off()
        async with bench.deployment.start() as process:
            assert (await process.log.backlog("ann", opened_before=1e12)).pending == 0
        assert await bench.active() == expected, f"broken off at call {number}"
        assert len(await bench.memories()) == 3
        if len(faults.calls) < number:
            break
    assert number > 8


async def _killed_at_apply(
    bench: Bench, process: Process, *, reader: PlainReader | None = None, is_after: bool = False
) -> None:
    """The plan is stored; nothing, or all of it (`is_after`), is written."""
    faults = Faults(name="apply", error=Killed(), is_after=is_after)
    with pytest.raises(Killed):
        await bench.worker(process, faults=faults, reader=reader).work_off()


class _Never(PlainReader):
    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        raise AssertionError("a window with a stored plan was read again")

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        raise AssertionError("the pairs of a stored plan were related again")


async def test_a_stored_plan_is_applied_as_it_was_without_asking_a_reader_again(bench: Bench, process: Process) -> None:
    await _known_and_waiting(bench, process, PARIS, f"{ROME} {SISTER}")
    await _killed_at_apply(bench, process)
    planned = {memory.id: memory for memory in await _planned(bench, process)}
    await bench.worker(process, reader=_Never(), model=_Never()).work_off()
    assert len(planned) == 3
    assert {memory.id: memory for memory in await bench.memories()} == planned


async def _planned(bench: Bench, process: Process) -> list[Memory]:
    """The rows of the only stored plan, some time later; it is given back."""
    bench.deployment.clock.now += LATER_SECONDS
    lease = await leased(process.log, bench.deployment.clock.now)
    await process.log.retry_at(lease, due_at=bench.deployment.clock.now, reason="only looked at")
    return [change.memory for change in plan.decode(lease.plan or b"").changes]


async def test_a_plan_does_not_undo_what_was_written_after_it(bench: Bench, process: Process) -> None:
    await bench.tell(process, "I live in Rome.")
    await _killed_at_apply(bench, process, is_after=True)
    (row,) = await bench.memories()
    edited = replace(row, content="I live in a village", updated_at=row.updated_at + 5)
    vectors = await bench.embedder.embed([edited.content], is_urgent=False)
    await bench.store.apply("ann", [Change(ChangeKind.UPDATE, edited)], vectors)
    bench.deployment.clock.now += LATER_SECONDS
    await bench.worker(process).work_off()
    assert await bench.contents() == ["I live in a village"]


async def test_what_was_forgotten_meanwhile_is_not_brought_back_by_making_it_again(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await _known_and_waiting(bench, process, CAT, f"My cat is called Tom! {SISTER} I dive.")
        await _killed_at_apply(bench, process)
        planned = {memory.content: memory.id for memory in await _planned(bench, process)}
        (cat,) = await bench.memories()
        async with process.ledger.write("ann") as held:
            await held.forget([cat.id, planned["I dive."]])
            await bench.store.delete("ann", [cat.id])
    async with bench.later(LATER_SECONDS) as process:
        await bench.worker(process, reader=_Never(), model=_Never()).work_off()
    assert await bench.contents() == [SISTER]


class _Deaf(PlainReader):
    """Understands no request to forget."""

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        return [one for one in await super().read(turns, context=context) if one.act is not Act.FORGET]


async def test_a_request_is_heeded_as_it_was_read_when_it_was_made(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await _known_and_waiting(bench, process, ROME, f"{CAT} {SISTER}")
    await _said_meanwhile(bench, "Please forget that my cat is called Tom.")
    async with bench.later(LATER_SECONDS) as process:
        await bench.worker(process, reader=_Deaf()).work_off()
    assert await bench.contents() == sorted([ROME, SISTER])


@pytest.mark.parametrize(
    ("meanwhile", "expected"),
    [(BOAT, [FRIDAY, BOAT]), (MONDAY, [FRIDAY, MONDAY])],
    ids=["the pair is as it was", "the older one was said again"],
)
async def test_what_a_reader_said_of_a_pair_counts_until_one_of_it_changes(
    bench: Bench, meanwhile: str, expected: list[str]
) -> None:
    async with bench.deployment.start() as process:
        await _known_and_waiting(bench, process, MONDAY, FRIDAY)
        await _killed_at_apply(bench, process, reader=PlainReader(moves((MONDAY, FRIDAY))))
    await _said_meanwhile(bench, meanwhile)
    async with bench.later(LATER_SECONDS) as process:
        await bench.worker(process, reader=_Never()).work_off()
    assert await bench.active() == sorted(expected)


async def test_a_yes_that_was_applied_is_not_applied_again(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.learn(process, CAT, session="s1", answer="Your cat is called Tom.")
        (known,) = await bench.memories()
        await bench.tell(process, "That's right.", session="s1")
        await _killed_at_apply(bench, process, is_after=True)
        (raised,) = await bench.memories()
    await _said_meanwhile(bench, BOAT)
    async with bench.later(LATER_SECONDS) as process:
        await bench.worker(process).work_off()
    cat = next(memory for memory in await bench.memories() if "cat" in memory.content)
    assert cat.confidence == raised.confidence > known.confidence


SAID = "My cat is called Tom. The weather felt strange near Tom the whole afternoon."
KEEPS_RAW_WORDS = WorkerSettings(words_of=frozenset({Role.USER}))


@pytest.mark.parametrize(
    ("error", "known"), [(Killed(), True), (Unavailable("milvus", "down"), False)], ids=["killed", "unavailable"]
)
@pytest.mark.parametrize("how", ["the user", "the turn", "the session"])
async def test_what_is_forgotten_while_its_plan_is_tried_again_does_not_return(
    bench: Bench, how: str, error: BaseException, *, known: bool
) -> None:
    async with bench.deployment.start() as process:
        if known:
            await bench.learn(process, "I live in Rome.", session="s0")
        turn = await bench.tell(process, SAID, session="s1")
        with suppress(Killed):
            faults = Faults(name="apply", error=error)
            await bench.worker(process, settings=KEEPS_RAW_WORDS, faults=faults).work_off()
    async with bench.later(LATER_SECONDS) as process:
        await process.log.recover()

        async def forget() -> None:
            bench.deployment.clock.now += 1
            erasure = bench.erasure(process)
            if how == "the user":
                await erasure.scope("ann", "")
            elif how == "the turn":
                await erasure.source("ann", turn.id)
            else:
                await erasure.withdraw("ann", [turn.id])
                await erasure.sources("ann", [turn.id])
                await process.log.messages.delete_turns("ann", [turn.id])
                await erasure.drop_states("ann")

        embedder: Any = Frozen(bench.embedder, "embed", forget)  # the lease is held, and the user's lock not yet
        await replace(bench, embedder=embedder).worker(process, settings=KEEPS_RAW_WORDS).work_off()
        assert embedder.has_arrived
        bench.deployment.clock.now += LATER_SECONDS
        await bench.worker(process, settings=KEEPS_RAW_WORDS).work_off()
        assert (await process.log.backlog("ann", opened_before=1e12)).pending == 0
    assert [one for one in await bench.contents() if "Tom" in one] == []
    assert [one for one in await bench.raw_words() if "Tom" in str(one)] == []


def test_a_stored_plan_comes_back_as_it_was_made() -> None:
    old, new = memory("old", MONDAY), memory("new", f"{FRIDAY} \ud800")
    changes = [Change(ChangeKind.CREATE, new), Change(ChangeKind.SUPERSEDE, replace(old, superseded_by="new"))]
    for made in (plan.Plan(changes, ("gone",), {"r": {"count": 1}}, raw=(old,)), plan.Plan([])):
        assert plan.decode(plan.encode(made)) == made


@pytest.mark.parametrize("damaged", [b"", b"{}", b"[]", b'{"version": 5}', b'{"version": 99, "changes": []}'])
def test_a_plan_of_another_release_is_reported_and_never_guessed_at(damaged: bytes) -> None:
    with pytest.raises(plan.UnreadablePlan):
        plan.decode(damaged)


def test_a_claim_whose_row_was_forgotten_is_not_written_again_whatever_its_row_had_become() -> None:
    inputs = PlanInputs(1, (claim(MONDAY), claim(f"{MONDAY} It scares me.")), (), (), {})
    rows = [memory(f"id-{number}", text) for number, text in enumerate((MONDAY, "It scares me."))]
    changes = [Change(ChangeKind.CREATE, row) for row in rows]
    found = progress_of(inputs, changes, stored={}, forgotten={"id-1"}, ids=lambda ordinal: f"id-{ordinal}")
    assert found.done == {1}
