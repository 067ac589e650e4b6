"""Files after erasures: they are rewritten, all parts or none, for all erasures of a while at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import structlog
from prometheus_client import CollectorRegistry
from turn_logs import ManualClock

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.erasures import SqliteErasures
from memory.errors import Unavailable
from memory.ports.erasures import ErasureRequest, Erasures, FileRewriting
from memory.runtime.metrics import Metrics
from memory.service import user_erasures
from memory.service.user_erasures import DAY, FileRewriter, pause_after

USER = "ann-7f3a"


async def nothing() -> None: ...


class CountedStore:
    """A store whose rows would all be copied. `then`: what happens meanwhile."""

    def __init__(self, then: Callable[[], Awaitable[None]] = nothing) -> None:
        self.rewritings = 0
        self._then = then

    async def refuse_in_vain(self) -> None: ...

    async def rewrite(self) -> None:
        self.rewritings += 1
        await self._then()


def rewriter_of(erasures: Erasures, *parts: FileRewriting, clock: ManualClock, keep_days: int = 9) -> FileRewriter:
    return FileRewriter(erasures, parts, clock=clock, metrics=Metrics(CollectorRegistry()), keep_days=keep_days)


@pytest.mark.parametrize(("bytes_max", "rewritings"), [(1_000, 0), (1 << 30, 1)])
async def test_the_store_is_not_copied_again_and_again_for_a_turn_log_that_is_too_large(
    tmp_path: Path, bytes_max: int, rewritings: int
) -> None:
    store, clock = CountedStore(), ManualClock()
    async with SqliteDatabase(tmp_path / "turns.sqlite", rewrite_bytes_max=bytes_max) as database:
        erasures = SqliteErasures(database)
        rewriter = rewriter_of(erasures, store, database, clock=clock)
        assert await rewriter.run_once() is None
        assert store.rewritings == 0  # nobody waits
        await erasures.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        if not rewritings:
            with pytest.raises(Unavailable, match="memproxy compact"):
                await rewriter.run_once()
        else:
            await rewriter.run_once()
        assert store.rewritings == rewritings
        found = await erasures.get(USER, "e1")
        assert found is not None
        assert (found.rewritten_at is not None) == bool(rewritings)


def test_rewriting_takes_a_fifth_of_the_time_at_most_and_erasures_of_five_seconds_share_one() -> None:
    assert pause_after(None) == 1.0
    assert pause_after(0.0) == pause_after(1.0) == 5.0
    assert pause_after(60.0) == 240.0


async def rewritten(erasures: Erasures, *erasure_ids: str) -> None:
    """Once all of these are."""
    async with asyncio.timeout(60):
        while any(one.id in erasure_ids for one in await erasures.pending()):
            await asyncio.sleep(0.005)


@pytest.mark.soak("judges time")
async def test_erasures_that_happen_close_together_share_a_rewriting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_erasures, "SHARED_SECONDS", 1.0)
    monkeypatch.setattr(user_erasures, "LOOK_SECONDS", 0.01)
    clock, until = ManualClock(), asyncio.Event()
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database, asyncio.TaskGroup() as group:
        erasures, first = SqliteErasures(database), asyncio.Event()

        async def is_begun() -> None:
            first.set()

        store = CountedStore(is_begun)
        await erasures.begun(USER, ErasureRequest("e0", clock(), clock(), {}))
        group.create_task(rewriter_of(erasures, store, clock=clock).run(until))
        await first.wait()
        began_at = asyncio.get_running_loop().time()
        for number in range(1, 30):
            await asyncio.sleep(0.02)
            await erasures.begun(USER, ErasureRequest(f"e{number}", clock(), clock(), {}), part=f"project {number}")
        await rewritten(erasures, *(f"e{number}" for number in range(30)))
        seconds = asyncio.get_running_loop().time() - began_at
        until.set()
    assert store.rewritings <= 2 + seconds, "one at the beginning, and one a second"


async def test_what_cannot_be_rewritten_is_tried_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part before the one that refuses is rewritten each time."""
    monkeypatch.setattr(user_erasures, "RETRY_SECONDS", 0.01)
    clock, until = ManualClock(), asyncio.Event()

    async def refuses() -> None:
        raise Unavailable("turn_log", "Redis refuses BGREWRITEAOF")

    async with SqliteDatabase(tmp_path / "turns.sqlite") as database, asyncio.TaskGroup() as group:
        erasures, store = SqliteErasures(database), CountedStore()
        await erasures.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        group.create_task(rewriter_of(erasures, store, CountedStore(refuses), clock=clock).run(until))
        await asyncio.sleep(1.0)  # 0.01 + 0.02 + … + 0.32 s, and the seventh attempt is in 0.64 s
        until.set()
    assert 1 <= store.rewritings <= 7


async def test_the_record_of_an_erasure_ends_with_the_days_for_which_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_erasures, "LOOK_SECONDS", 0.01)
    clock, until = ManualClock(), asyncio.Event()
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database, asyncio.TaskGroup() as group:
        erasures = SqliteErasures(database)
        await erasures.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        await erasures.rewritten(await erasures.pending(), at=clock())
        group.create_task(rewriter_of(erasures, clock=clock, keep_days=2).run(until))
        clock.now += 2 * DAY - 1
        await asyncio.sleep(0.1)
        assert await erasures.get(USER, "e1") is not None
        clock.now += DAY / 24 + 2
        async with asyncio.timeout(60):
            while await erasures.get(USER, "e1") is not None:
                await asyncio.sleep(0.01)
        until.set()


class ErasuresThatStay(SqliteErasures):
    """Their records are not deleted while `is_failing`."""

    is_failing = True

    async def expire(self, *, before: float) -> None:
        if self.is_failing:
            raise Unavailable("turn_log", "the database is locked")
        await super().expire(before=before)


async def test_records_that_cannot_be_deleted_keep_no_file_from_being_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_erasures, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(user_erasures, "SHARED_SECONDS", 0.01)
    clock, until = ManualClock(), asyncio.Event()
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database, asyncio.TaskGroup() as group:
        erasures = ErasuresThatStay(database)
        await erasures.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        with structlog.testing.capture_logs() as said:
            group.create_task(rewriter_of(erasures, clock=clock, keep_days=2).run(until))
            await rewritten(erasures, "e1")
            async with asyncio.timeout(60):
                while not said:
                    await asyncio.sleep(0.01)
                erasures.is_failing = False
                clock.now += 3 * DAY
                while await erasures.get(USER, "e1") is not None:
                    await asyncio.sleep(0.01)
            until.set()
        assert {one["event"] for one in said} == {"old records of erasures are not deleted: trying again"}
