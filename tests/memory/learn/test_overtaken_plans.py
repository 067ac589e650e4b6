"""A plan that waited while somebody else wrote: made anew of the same facts and ids, and nobody asked again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from learning_parts import Bench, Faults, Killed
from plain_reader import PlainReader, by_words
from turn_logs import AT_ONCE, Process, sqlite_deployment

from memory.model import Act, Claim, MemoryStatus, Turn
from memory.ports import PairRelation, PairVerdict, StatementPair

LATER_SECONDS = 100.0
SISTER = "My sister lives in Oslo."
MONDAY, FRIDAY = "My dentist appointment is on Monday.", "My dentist appointment is on Friday."

# What is known, what waits, what somebody says meanwhile; what stands in the end.
OVERTAKEN = {
    "the later home": (
        "I live in Paris.",
        "I live in Rome.",
        "I live in Berlin.",
        ["I live in Berlin."],
    ),
    "the later job": (
        "I work at Nokia.",
        "I work at Siemens.",
        "I work at Bosch.",
        ["I work at Bosch."],
    ),
    "a first value, then a change": (
        "My cat is called Tom.",
        "I live in Rome.",
        "I live in Berlin.",
        ["I live in Berlin.", "My cat is called Tom."],
    ),
    "the same again": (
        "My cat is called Tom.",
        "I live in Rome.",
        "I live in Rome!",
        ["I live in Rome!", "My cat is called Tom."],
    ),
    "something else": (
        "I live in Paris.",
        "I live in Rome.",
        "My boat is called Nereid.",
        ["I live in Rome.", "My boat is called Nereid."],
    ),
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
    await bench.tell(process, known, session="s0")
    await bench.worker(process).work_off()
    await bench.tell(process, waiting, session="s1")


async def _said_meanwhile(bench: Bench, text: str) -> None:
    """Another session's turn is learnt, before the one that waits is tried again."""
    async with bench.deployment.start() as process:
        lease = await _leased(process, bench.deployment.clock.now)
        if lease is not None:
            await process.log.retry_at(lease, due_at=bench.deployment.clock.now + LATER_SECONDS / 2, reason="waits")
        await bench.tell(process, text, session="s2")
        await bench.worker(process).work_off()


async def _leased(process: Process, now: float) -> Any:
    return await process.log.lease(now=now, seconds=1.0, due=AT_ONCE)


async def _active(bench: Bench) -> list[str]:
    return sorted(memory.content for memory in await bench.memories(status=MemoryStatus.ACTIVE))


async def _calls_of_waiting(folder: Path, known: str, waiting: str) -> int:
    bench, faults = Bench(sqlite_deployment(folder)), Faults()
    async with bench.deployment.start() as process:
        await _known_and_waiting(bench, process, known, waiting)
        await bench.worker(process, faults=faults, model=TalksOnce()).work_off()
    return len(faults.calls)


def _in(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("case", OVERTAKEN)
async def test_wherever_a_window_broke_off_what_was_said_meanwhile_is_heeded(
    tmp_path: Path, case: str, *, is_after: bool
) -> None:
    known, waiting, meanwhile, expected = OVERTAKEN[case]
    calls = await _calls_of_waiting(_in(tmp_path / "quiet"), known, waiting)
    assert calls > 8
    for number in range(1, calls + 1):
        bench, model = Bench(sqlite_deployment(_in(tmp_path / str(number)))), TalksOnce()
        async with bench.deployment.start() as dying:
            await _known_and_waiting(bench, dying, known, waiting)
            with suppress(Killed):
                faults = Faults(number=number, error=Killed(), is_after=is_after)
                await bench.worker(dying, faults=faults, model=TalksOnce()).work_off()
        bench.deployment.clock.now += LATER_SECONDS
        await _said_meanwhile(bench, meanwhile)
        for _ in range(2):
            bench.deployment.clock.now += LATER_SECONDS
            async with bench.deployment.start() as survivor:
                await bench.worker(survivor, model=model).work_off()
                assert (await survivor.log.backlog("ann", opened_before=1e12)).pending == 0
        found = await _active(bench)
        folded = sorted(content.replace("!", ".") for content in expected)
        assert sorted(content.replace("!", ".") for content in found) == folded, f"broken off at call {number}"
        assert len(await bench.memories()) == len({memory.content for memory in await bench.memories()})


@pytest.mark.parametrize("number", range(1, 40))
async def test_making_it_anew_can_be_broken_off_anywhere_itself(tmp_path: Path, number: int) -> None:
    known, waiting, meanwhile, expected = OVERTAKEN["the later home"]
    bench = Bench(sqlite_deployment(tmp_path))
    async with bench.deployment.start() as process:
        await _known_and_waiting(bench, process, known, waiting)
        with suppress(Killed):
            await bench.worker(process, faults=Faults(name="apply", error=Killed())).work_off()
    bench.deployment.clock.now += LATER_SECONDS
    await _said_meanwhile(bench, meanwhile)
    bench.deployment.clock.now += LATER_SECONDS
    async with bench.deployment.start() as process:
        with suppress(Killed):
            await bench.worker(
                process, faults=Faults(number=number, error=Killed()), reader=_Never(), model=_Never()
            ).work_off()
    bench.deployment.clock.now += LATER_SECONDS
    async with bench.deployment.start() as process:
        await bench.worker(process, reader=_Never(), model=_Never()).work_off()
        assert (await process.log.backlog("ann", opened_before=1e12)).pending == 0
    assert await _active(bench) == expected
    assert len(await bench.memories()) == 3


class _Never(PlainReader):
    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        raise AssertionError("a window with a stored plan was read again")

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        raise AssertionError("the pairs of a stored plan were related again")


async def test_what_was_forgotten_meanwhile_is_not_brought_back_by_making_it_anew(tmp_path: Path) -> None:
    bench = Bench(sqlite_deployment(tmp_path))
    async with bench.deployment.start() as process:
        await _known_and_waiting(bench, process, "My cat is called Tom.", f"My cat is called Tom! {SISTER}")
        with suppress(Killed):
            await bench.worker(process, faults=Faults(name="apply", error=Killed())).work_off()
        (cat,) = await bench.memories()
        async with process.ledger.write("ann") as held:
            await held.forget([cat.id])
            await bench.store.delete("ann", [cat.id])
    bench.deployment.clock.now += LATER_SECONDS
    async with bench.deployment.start() as process:
        await bench.worker(process, reader=_Never(), model=_Never()).work_off()
    assert await bench.contents() == [SISTER]


class _Deaf(PlainReader):
    """Understands no request to forget."""

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        return [one for one in await super().read(turns, context=context) if one.act is not Act.FORGET]


async def test_a_request_is_heeded_as_it_was_read_when_it_was_made(tmp_path: Path) -> None:
    bench = Bench(sqlite_deployment(tmp_path))
    async with bench.deployment.start() as process:
        await _known_and_waiting(bench, process, "I live in Rome.", f"My cat is called Tom. {SISTER}")
    await _said_meanwhile(bench, "Please forget that my cat is called Tom.")
    bench.deployment.clock.now += LATER_SECONDS
    async with bench.deployment.start() as process:
        await bench.worker(process, reader=_Deaf()).work_off()
    assert await bench.contents() == sorted(["I live in Rome.", SISTER])


@pytest.mark.parametrize(
    ("meanwhile", "expected"),
    [("My boat is called Nereid.", [FRIDAY, "My boat is called Nereid."]), (MONDAY, [FRIDAY, MONDAY])],
    ids=["the pair is as it was", "the older one was said again"],
)
async def test_what_a_reader_said_of_a_pair_counts_until_one_of_it_changes(
    tmp_path: Path, meanwhile: str, expected: list[str]
) -> None:
    bench = Bench(sqlite_deployment(tmp_path))
    async with bench.deployment.start() as process:
        await _known_and_waiting(bench, process, MONDAY, FRIDAY)
        with suppress(Killed):
            faults = Faults(name="apply", error=Killed())
            await bench.worker(process, faults=faults, reader=PlainReader(_moves)).work_off()
    bench.deployment.clock.now += LATER_SECONDS
    await _said_meanwhile(bench, meanwhile)
    bench.deployment.clock.now += LATER_SECONDS
    async with bench.deployment.start() as process:
        await bench.worker(process, reader=_Never()).work_off()
    assert await _active(bench) == sorted(expected)


def _moves(pair: StatementPair) -> PairVerdict:
    is_moved = (pair.older, pair.newer) == (MONDAY, FRIDAY)
    return PairVerdict(PairRelation.REPLACES, 0.9) if is_moved else by_words(pair)


async def test_a_yes_that_was_applied_is_not_applied_again(tmp_path: Path) -> None:
    bench = Bench(sqlite_deployment(tmp_path))
    async with bench.deployment.start() as process:
        await bench.tell(process, "My cat is called Tom.", session="s1", answer="Your cat is called Tom.")
        await bench.worker(process).work_off()
        (known,) = await bench.memories()
        await bench.tell(process, "That's right.", session="s1")
        with suppress(Killed):
            await bench.worker(process, faults=Faults(name="apply", error=Killed(), is_after=True)).work_off()
        (raised,) = await bench.memories()
    bench.deployment.clock.now += LATER_SECONDS
    await _said_meanwhile(bench, "My boat is called Nereid.")
    bench.deployment.clock.now += LATER_SECONDS
    async with bench.deployment.start() as process:
        await bench.worker(process).work_off()
    cat = next(memory for memory in await bench.memories() if "cat" in memory.content)
    assert raised.confidence > known.confidence
    assert cat.confidence == raised.confidence
