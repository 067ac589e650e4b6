"""Writes during an outage of the turn log: repeated until it is over, in order; and how it shows later as a gap."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry
from virtual_time import in_virtual_time, now

from extproc.retrying_writes import BEAT_SECONDS, PAUSE_SECONDS_MAX, REFUSED_SECONDS_MAX, RecordingBeats, RetryingWrites
from memory.errors import Late, Unavailable, Unusable
from memory.runtime.metrics import Metrics


@dataclass
class Log:
    """Takes nothing before `up_at`, and for ever refuses what is poisoned."""

    up_at: float = 0.0
    poisoned: str = ""
    refusal: type[Unavailable] = Unusable
    taken: list[str] = field(default_factory=list)
    asked: int = 0

    def writing(self, name: str) -> Callable[[], Awaitable[str]]:
        async def write() -> str:
            self.asked += 1
            await asyncio.sleep(0)
            if now() < self.up_at:
                raise Unavailable("turn_log", "down")
            if name == self.poisoned:
                raise self.refusal("turn_log", "refused")
            self.taken.append(name)
            return name.upper()

        return write


def retrying(on_outage: Callable[[Unavailable], None] = lambda _: None) -> RetryingWrites:
    return RetryingWrites(on_outage, Metrics(CollectorRegistry()).turns_waiting)


@in_virtual_time
async def test_what_comes_during_an_outage_is_written_after_it_in_order_before_what_comes_later() -> None:
    log, outages = Log(up_at=10.0), list[Unavailable]()
    writes = retrying(outages.append)

    async def come_late() -> str:
        await asyncio.sleep(10.0)  # it is up again, and the others pause
        return await writes.write(log.writing("z"))

    assert await asyncio.gather(*(writes.write(log.writing(name)) for name in "abc"), come_late()) == list("ABCZ")
    assert log.taken == list("abcz")
    assert now() <= 10.0 + PAUSE_SECONDS_MAX
    assert outages != []
    assert await writes.write(log.writing("f")) == "F"


@in_virtual_time
async def test_without_an_outage_nobody_waits_for_others() -> None:
    log, writes = Log(), retrying()
    is_over = asyncio.Event()

    async def come() -> None:
        assert await writes.write(log.writing("a")) == "A"
        is_over.set()

    await asyncio.gather(writes.write(is_over.wait), come())


@in_virtual_time
async def test_nothing_is_given_up_however_long_an_outage_lasts() -> None:
    log, writes = Log(up_at=1_200.0), retrying()
    assert await asyncio.gather(*(writes.write(log.writing(name)) for name in "abc")) == list("ABC")
    assert log.taken == list("abc")


@pytest.mark.parametrize("refusal", [Unusable, Late])
@in_virtual_time
async def test_one_that_alone_is_refused_holds_the_others_up_for_a_limited_time(refusal: type[Unavailable]) -> None:
    log, writes = Log(up_at=1.0, poisoned="a", refusal=refusal), retrying()
    both = (writes.write(log.writing(name)) for name in "ab")
    impossible, other = await asyncio.gather(*both, return_exceptions=True)
    assert isinstance(impossible, refusal)
    assert other == "B"
    assert REFUSED_SECONDS_MAX <= now() <= REFUSED_SECONDS_MAX + 2 * PAUSE_SECONDS_MAX  # since it is up


@in_virtual_time
async def test_an_outage_before_a_refusal_does_not_count_towards_it() -> None:
    log, writes = Log(up_at=10 * REFUSED_SECONDS_MAX, poisoned="a"), retrying()
    with pytest.raises(Unusable):
        await writes.write(log.writing("a"))
    assert now() >= 11 * REFUSED_SECONDS_MAX


@in_virtual_time
async def test_whoever_ends_tries_each_once_more_and_waits_no_longer() -> None:
    log, writes = Log(up_at=math.inf), retrying()
    asyncio.get_running_loop().call_later(5.0, writes.give_up)
    waiting = [writes.write(log.writing(name)) for name in "ab"]
    assert all(isinstance(one, Unavailable) for one in await asyncio.gather(*waiting, return_exceptions=True))
    assert now() == 5.0
    tried = log.asked
    with pytest.raises(Unavailable):
        await writes.write(log.writing("c"))
    assert log.asked == tried + 1
    log.up_at = 0.0
    assert await writes.write(log.writing("d")) == "D"


@dataclass
class Times:
    """When it was told that turns are recorded, and since when some were missed."""

    told: list[tuple[float, float | None]] = field(default_factory=list)

    async def beat(self, *, missed_since: float | None = None) -> None:
        self.told.append((now(), missed_since))
        if len(self.told) == 2:
            raise Unavailable("turn_log", "down")


@in_virtual_time
async def test_a_gap_is_told_with_the_next_beat_that_is_written() -> None:
    times = Times()
    beats = RecordingBeats(times, now)  # type: ignore[arg-type]
    asyncio.get_running_loop().call_later(1.5 * BEAT_SECONDS, beats.miss)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(4.5 * BEAT_SECONDS):
            await beats.run()
    missed_at = 1.5 * BEAT_SECONDS
    missed = (None, missed_at, missed_at, None)
    assert times.told == [(number * BEAT_SECONDS, since) for number, since in enumerate(missed, start=1)]
