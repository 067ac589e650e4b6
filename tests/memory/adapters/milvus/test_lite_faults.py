"""Milvus Lite as a real process that is killed, frozen, late, wiped, or filled by somebody else."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from memory_rows import DIMENSION, direction, memory, put
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry

from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore, MilvusTimeouts
from memory.errors import Unavailable
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics

pytestmark = pytest.mark.full("kills, freezes and restarts a server")

TIMEOUTS = MilvusTimeouts(search=0.3, read=30.0, write=30.0)
HANG_SECONDS = 60.0
ANN = MemoryFilter("ann")
WRITERS, ROWS = 6, 60
Result = TypeVar("Result")
LONG = "a sentence that takes some room in the log, so that writes meet there; " * 40


@dataclass(frozen=True, slots=True)
class Mortal:
    """A server that a test may break, and its own collection there."""

    server: MilvusLiteServer
    collection: str

    def opened(self, *, metrics: Metrics | None = None, timeouts: MilvusTimeouts = TIMEOUTS) -> MilvusStore:
        address = MilvusAddress(self.server.uri, self.collection, DIMENSION)
        return MilvusStore(address, metrics=metrics or Metrics(CollectorRegistry()), timeouts=timeouts)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        self.server.freeze()
        try:
            yield
        finally:
            self.server.thaw()


@pytest.fixture(scope="module")
def broken_before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    """Killed and frozen by one test after the other, each with a collection of its own."""
    server = MilvusLiteServer(tmp_path_factory.mktemp("faults") / "milvus")
    yield Mortal(server, "empty")
    server.kill()


@pytest.fixture
async def mortal(broken_before: Mortal, collection: str) -> Mortal:
    """It runs, whatever was done to it, and has taken up what it held."""
    if not broken_before.server.is_running:
        broken_before.server.start()
        async with broken_before.opened() as store:
            await until(store.prepare)
    return replace(broken_before, collection=collection)


@pytest.fixture
async def store(mortal: Mortal) -> AsyncIterator[MilvusStore]:
    async with mortal.opened() as store:
        yield store


@pytest.fixture
def emptied(tmp_path: Path, collection: str) -> Iterator[Mortal]:
    """A server that holds nothing, for what happens to its files."""
    server = MilvusLiteServer(tmp_path / "milvus")
    yield Mortal(server, collection)
    server.kill()


async def found(store: MilvusStore, user_id: str = "ann") -> set[str]:
    return {one.memory.id for one in await store.search(MemoryFilter(user_id), direction(1.0), limit=100)}


async def until(call: Callable[[], Awaitable[Result]]) -> Result:
    """What it says once it works again, trying as a busy proxy would."""
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            try:
                return await call()
            except Unavailable:
                await asyncio.sleep(0.02)


async def fail(call: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(Unavailable, match="milvus"):
        await call()


async def test_what_was_written_and_deleted_survives_a_kill_right_after(mortal: Mortal, store: MilvusStore) -> None:
    expected: set[str] = set()
    for round_ in range(2):
        ids = {f"m{round_}-{i}" for i in range(4)}
        await put(store, memory("forgotten"), *map(memory, sorted(ids)))
        await store.delete("ann", ["forgotten"])
        mortal.server.kill()
        expected |= ids
        mortal.server.start()
        assert await until(partial(found, store)) == expected
        assert await store.count(ANN) == len(expected)


async def test_what_writers_at_once_were_told_is_stored_survives_a_kill(emptied: Mortal) -> None:
    emptied.server.start()
    users = [f"user-{number}" for number in range(WRITERS)]

    async def write(store: MilvusStore, user: str) -> None:
        for number in range(ROWS):
            await put(store, memory(f"{user} {number}", user_id=user, content=f"{LONG}{user} {number}"))

    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(emptied.opened()) for _ in users]
        await stores[0].prepare()
        await asyncio.gather(*map(write, stores, users))
    emptied.server.kill()
    emptied.server.start()
    async with emptied.opened() as store:
        assert {user: await store.count(MemoryFilter(user)) for user in users} == dict.fromkeys(users, ROWS)


async def test_a_killed_server_is_reported_and_found_when_it_is_back(mortal: Mortal, store: MilvusStore) -> None:
    await put(store, memory("m"))
    mortal.server.kill()
    await fail(partial(found, store))
    await fail(partial(put, store, memory("n")))
    assert not await store.is_ready()
    mortal.server.start()
    await until(partial(found, store))
    assert await store.is_ready()
    await put(store, memory("n"))
    assert await until(partial(found, store)) == {"m", "n"}


async def test_a_deletion_right_after_a_restart_of_the_server_takes_effect(mortal: Mortal) -> None:
    async with mortal.opened(timeouts=MilvusTimeouts()) as store:
        await put(store, memory("m-1"), memory("m-2"))
        mortal.server.kill()
        mortal.server.start()
        await store.delete("ann", ["m-1"])
        assert await store.ids(MemoryFilter("ann", status=None)) == ["m-2"]


async def test_nobody_waits_for_a_frozen_server_also_while_connecting(mortal: Mortal, store: MilvusStore) -> None:
    await put(store, memory("m"))
    async with mortal.opened() as fresh:
        with mortal.frozen():
            for _ in range(4):
                await fail(partial(found, store))
            await fail(partial(found, fresh))
            assert not await fresh.is_ready()
        for one in (store, fresh):
            assert await until(partial(found, one)) == {"m"}


async def test_no_server_is_needed_at_the_start_and_a_collection_that_was_wiped_is_made_anew(emptied: Mortal) -> None:
    async with emptied.opened() as store:
        await fail(store.prepare)
        assert not await store.is_ready()
        emptied.server.start()
        await until(store.prepare)
        await put(store, memory("m"))
        assert await until(partial(found, store)) == {"m"}
        emptied.server.kill()
        shutil.rmtree(emptied.server._data_dir)
        emptied.server.start()
        assert await until(partial(found, store)) == set()
        await put(store, memory("n"))
        assert await until(partial(found, store)) == {"n"}


async def test_an_index_that_was_cut_short_by_a_kill_is_made_again(emptied: Mortal) -> None:
    emptied.server.start()
    async with emptied.opened() as store:
        await put(store, *(memory(f"m{i}") for i in range(300)))  # past a flush, which writes an index
        async with asyncio.timeout(30):
            while not list(emptied.server._data_dir.rglob("*.idx")):
                await asyncio.sleep(0.05)
    emptied.server.kill()
    indexes = list(emptied.server._data_dir.rglob("*.idx"))
    assert indexes
    for file in indexes:
        file.write_bytes(b"")
    emptied.server.start()
    async with emptied.opened() as store:
        await until(store.prepare)
        assert await store.count(ANN) == 300
        assert len(await until(partial(found, store))) == 100


async def test_a_cancelled_call_leaves_the_connection_sound(mortal: Mortal) -> None:
    async with mortal.opened(timeouts=MilvusTimeouts(search=HANG_SECONDS)) as store:
        await put(store, memory("m"))
        with mortal.frozen(), pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await found(store)
        assert await until(partial(found, store)) == {"m"}


async def test_calls_and_failures_are_counted_and_no_content_is_logged(
    mortal: Mortal, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    metrics = Metrics(CollectorRegistry())
    async with mortal.opened(metrics=metrics) as store:
        await put(store, memory("a-secret-id", user_id="a-secret-user"))
        logging.getLogger("pymilvus").addHandler(caplog.handler)  # it hands nothing on to the root logger
        mortal.server.kill()
        await fail(partial(found, store, "a-secret-user"))
        logging.getLogger("pymilvus").removeHandler(caplog.handler)
    value = metrics.registry.get_sample_value
    assert (value("memproxy_store_seconds_count", {"call": "apply"}) or 0) >= 1
    assert value("memproxy_store_errors_total", {"call": "search"}) == 1
    assert not [record for record in caplog.records if record.name.startswith("pymilvus")]
    printed = "".join(capfd.readouterr()) + caplog.text
    assert "a-secret" not in printed
    assert printed.count("part is unavailable") == 1
