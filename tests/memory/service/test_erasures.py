"""After erasures files are rewritten, for all of a while at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
import structlog
from prometheus_client import CollectorRegistry
from turn_logs import ManualClock
from virtual_time import in_virtual_time, now

from memory.adapters.sql.erasures import SqlErasures
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.errors import Unavailable
from memory.model.erasures import ErasureRequest
from memory.ports.erasures import Erasures, FileRewriting
from memory.runtime.metrics import Metrics
from memory.service.user_erasures import DAY, RETRY_SECONDS, SHARED_SECONDS, FileRewriter

USER = "ann-7f3a"


class CountedStore:
    """A store whose rows would all be copied, unless it refuses."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.rewritings: list[float] = []
        self._refuses = refuses

    async def refuse_in_vain(self) -> None: ...

    async def rewrite(self) -> None:
        self.rewritings.append(now())
        if self._refuses:
            raise Unavailable("turn_log", "PostgreSQL refuses VACUUM")


def rewriter_of(erasures: Erasures, *parts: FileRewriting, clock: Callable[[], float]) -> FileRewriter:
    return FileRewriter(erasures, parts, clock=clock, metrics=Metrics(CollectorRegistry()), keep_days=2)


@pytest.mark.parametrize(("bytes_max", "rewritings"), [(1_000, 0), (1 << 30, 1)])
async def test_no_store_is_copied_in_vain_for_a_large_turn_log(tmp_path: Path, bytes_max: int, rewritings: int) -> None:
    store, clock = CountedStore(), ManualClock()
    async with SqliteDatabase(tmp_path / "turns.sqlite", rewrite_bytes_max=bytes_max) as database:
        erasures = SqlErasures(database)
        rewriter = rewriter_of(erasures, store, database, clock=clock)
        assert not await rewriter.run_once()
        assert store.rewritings == []  # nobody waits
        await erasures.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        with nullcontext() if rewritings else pytest.raises(Unavailable, match="memproxy compact"):
            await rewriter.run_once()
        assert len(store.rewritings) == rewritings
        assert ((await erasures.get(USER, "e1")).rewritten_at is not None) == bool(rewritings)


class Waiting:
    """`Erasures` in a list, as a rewriter needs them. Old records are not deleted while `is_failing`."""

    def __init__(self) -> None:
        self.waiting: list[ErasureRequest] = []
        self.expired: list[float] = []
        self.is_failing = False

    def begin(self) -> None:
        self.waiting.append(ErasureRequest(f"at {now()}", now(), now(), {}))

    async def pending(self) -> list[ErasureRequest]:
        return list(self.waiting)

    async def rewritten(self, requests: Sequence[ErasureRequest], *, at: float) -> None:
        self.waiting = [one for one in self.waiting if one not in requests]

    async def expire(self, *, before: float) -> None:
        if self.is_failing:
            raise Unavailable("turn_log", "the database is locked")
        self.expired.append(before)


@asynccontextmanager
async def rewriting(*parts: FileRewriting) -> AsyncIterator[Waiting]:
    """A rewriter at work, in virtual time."""
    erasures, until = Waiting(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(rewriter_of(cast(Erasures, erasures), *parts, clock=now).run(until))
        yield erasures
        until.set()


@in_virtual_time
async def test_erasures_that_happen_close_together_share_a_rewriting() -> None:
    store = CountedStore()
    async with rewriting(store) as erasures:
        for _ in range(40):
            erasures.begin()
            await asyncio.sleep(0.3)
        await asyncio.sleep(SHARED_SECONDS)
        assert erasures.waiting == []
    assert [after - before for before, after in pairwise(store.rewritings)] == [SHARED_SECONDS] * 3


@in_virtual_time
async def test_what_cannot_be_rewritten_is_tried_once_a_minute_and_old_records_go_meanwhile() -> None:
    store = CountedStore()
    async with rewriting(store, CountedStore(refuses=True)) as erasures:
        erasures.begin()
        await asyncio.sleep(30 * RETRY_SECONDS + 1)
    assert [after - before for before, after in pairwise(store.rewritings)] == [RETRY_SECONDS] * 30
    assert erasures.expired == [-2 * DAY], "once an hour"


@in_virtual_time
async def test_records_that_cannot_be_deleted_keep_no_file_from_being_rewritten() -> None:
    with structlog.testing.capture_logs() as logs:
        async with rewriting() as erasures:
            erasures.is_failing = True
            erasures.begin()
            await asyncio.sleep(SHARED_SECONDS)
            assert erasures.waiting == []
            erasures.is_failing = False
            await asyncio.sleep(2 * RETRY_SECONDS)
    assert {one["event"] for one in logs} == {"old records of erasures are not deleted: trying again"}
    assert erasures.expired
