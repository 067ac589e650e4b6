"""Writes during an outage of the turn log: repeated until it is over, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from extproc import patient_writes
from extproc.patient_writes import PatientWrites
from memory.errors import Unavailable


@dataclass
class Log:
    """Takes nothing while it is down, and for ever refuses what is poisoned."""

    is_down: bool = False
    poisoned: str = ""
    taken: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def writing(self, name: str) -> Callable[[], Awaitable[str]]:
        async def write() -> str:
            self.asked.append(name)
            await asyncio.sleep(0)
            if self.is_down or name == self.poisoned:
                raise Unavailable("turn_log", "down")
            self.taken.append(name)
            return name.upper()

        return write


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_writes, "PAUSE_SECONDS_MIN", 0.001)
    monkeypatch.setattr(patient_writes, "PAUSE_SECONDS_MAX", 0.01)


async def written(
    writes: PatientWrites, log: Log, *names: str, then: Callable[[], object]
) -> list[str | BaseException]:
    """All at once; `then` happens when they have had time to fail. What each returns or raises."""

    async def meanwhile() -> None:
        await asyncio.sleep(0.05)
        then()

    async with asyncio.timeout(30):
        *results, _ = await asyncio.gather(
            *(writes.write(log.writing(name)) for name in names), meanwhile(), return_exceptions=True
        )
    return [one for one in results if one is not None]


async def test_what_comes_during_an_outage_is_written_after_it_in_order() -> None:
    log, outages = Log(is_down=True), list[Unavailable]()
    writes = PatientWrites(outages.append)

    def end() -> None:
        assert log.taken == []
        log.is_down = False

    assert await written(writes, log, *"abcde", then=end) == list("ABCDE")
    assert log.taken == list("abcde")
    assert outages != []
    assert await writes.write(log.writing("f")) == "F"


async def test_what_comes_later_waits_for_what_waits_already() -> None:
    log = Log(is_down=True)
    writes = PatientWrites(lambda _: None)
    late = list[str]()

    async def come() -> None:
        await asyncio.sleep(0.02)
        log.is_down = False  # while the others pause
        late.append(await writes.write(log.writing("z")))

    async with asyncio.timeout(30):
        await asyncio.gather(*(writes.write(log.writing(name)) for name in "abc"), come())
    assert log.taken == list("abcz")


async def test_without_an_outage_nobody_waits_for_others() -> None:
    log, writes = Log(), PatientWrites(lambda _: None)
    is_over = asyncio.Event()

    async def come() -> None:
        assert await writes.write(log.writing("a")) == "A"
        is_over.set()

    async with asyncio.timeout(30):
        await asyncio.gather(writes.write(is_over.wait), come())


async def test_one_that_is_impossible_holds_the_others_up_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_writes, "FIRST_SECONDS_MAX", 0.2)
    log = Log(is_down=True, poisoned="a")

    def end() -> None:
        log.is_down = False

    impossible, other = await written(PatientWrites(lambda _: None), log, *"ab", then=end)
    assert isinstance(impossible, Unavailable)
    assert other == "B"


async def test_whoever_ends_tries_each_once_more_and_waits_no_longer() -> None:
    log, writes = Log(is_down=True), PatientWrites(lambda _: None)
    assert all(isinstance(one, Unavailable) for one in await written(writes, log, *"ab", then=writes.give_up))
    tried = len(log.asked)
    with pytest.raises(Unavailable):
        await writes.write(log.writing("c"))
    assert len(log.asked) == tried + 1
    log.is_down = False
    assert await writes.write(log.writing("d")) == "D"
