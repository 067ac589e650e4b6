"""Milvus Lite as a real process that is killed, frozen, late, wiped, or filled by somebody else."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry
from pymilvus import MilvusClient

from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore, MilvusTimeouts
from memory.errors import BadSetting, Unavailable
from memory.model import Change, ChangeKind, Memory, Vector
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics

DIMENSION = 8
TIMEOUTS = MilvusTimeouts(search=0.3, read=2.0, write=3.0)
ANN = MemoryFilter("ann")


@dataclass(frozen=True, slots=True)
class Mortal:
    """A server that a test may break, and its own collection there."""

    server: MilvusLiteServer
    collection: str
    data: Path

    def opened(self, *, dimension: int = DIMENSION, metrics: Metrics | None = None) -> MilvusStore:
        address = MilvusAddress(self.server.uri, self.collection, dimension)
        return MilvusStore(address, metrics=metrics or Metrics(CollectorRegistry()), timeouts=TIMEOUTS)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        self.server.freeze()
        try:
            yield
        finally:
            self.server.thaw()


@pytest.fixture(scope="module")
def broken_before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MilvusLiteServer, Path]]:
    """Killed and frozen by one test after the other, each with a collection of its own."""
    data = tmp_path_factory.mktemp("faults") / "milvus"
    server = MilvusLiteServer(data)
    yield server, data
    server.kill()


@pytest.fixture
async def mortal(broken_before: tuple[MilvusLiteServer, Path], collection: str) -> Mortal:
    """It runs, whatever was done to it, and has taken up what it held."""
    server, data = broken_before
    if not server.is_running:
        server.start()
        async with Mortal(server, "empty", data).opened() as store:
            await seconds_until(store.prepare)
    return Mortal(server, collection, data)


@pytest.fixture
def server(mortal: Mortal) -> MilvusLiteServer:
    return mortal.server


@pytest.fixture
async def store(mortal: Mortal) -> AsyncIterator[MilvusStore]:
    async with mortal.opened() as store:
        yield store


@pytest.fixture
def emptied(tmp_path: Path, collection: str) -> Iterator[Mortal]:
    """A server that holds nothing, for what happens to its files."""
    server = MilvusLiteServer(tmp_path / "milvus")
    yield Mortal(server, collection, tmp_path / "milvus")
    server.kill()


def vectors(count: int, dimension: int = DIMENSION) -> Vector:
    return np.tile(np.eye(1, dimension, dtype=np.float32), (count, 1))


async def remember(store: MilvusStore, *ids: str, user_id: str = "ann", own: Vector | None = None) -> None:
    memories = [Memory(i, user_id, f"content of {i}", created_at=1.0, updated_at=1.0, said_at=1.0) for i in ids]
    changes = [Change(ChangeKind.CREATE, memory) for memory in memories]
    await store.apply(user_id, changes, vectors(len(ids)) if own is None else own)


async def found(store: MilvusStore, user_id: str = "ann") -> set[str]:
    candidates = await store.search(MemoryFilter(user_id), vectors(1)[0], limit=100)
    return {candidate.memory.id for candidate in candidates}


async def seconds_to_fail(call: Callable[[], Awaitable[object]]) -> float:
    began = time.monotonic()
    with pytest.raises(Unavailable, match="milvus"):
        await call()
    return time.monotonic() - began


async def seconds_until(call: Callable[[], Awaitable[object]], *, limit: float = 10.0) -> float:
    """How long until it works again, trying as a busy proxy would."""
    began = time.monotonic()
    async with asyncio.timeout(limit):
        while True:
            try:
                await call()
                return time.monotonic() - began
            except Unavailable:
                await asyncio.sleep(0.02)


@pytest.mark.full("kills and restarts a server, or fills it")
async def test_what_apply_wrote_survives_a_kill_right_after_it_returned(
    server: MilvusLiteServer, store: MilvusStore
) -> None:
    expected: set[str] = set()
    for round_ in range(3):
        ids = [f"m{round_}-{i}" for i in range(4)]
        await remember(store, *ids)
        server.kill()
        expected |= set(ids)
        server.start()
        await seconds_until(lambda: found(store))
        assert await found(store) == expected
        assert await store.count(ANN) == len(expected)


async def test_what_was_deleted_stays_deleted_after_a_kill(server: MilvusLiteServer, store: MilvusStore) -> None:
    await remember(store, "kept", "forgotten")
    await store.delete("ann", ["forgotten"])
    server.kill()
    server.start()
    await seconds_until(lambda: found(store))
    assert await found(store) == {"kept"}


async def test_a_killed_server_is_reported_at_once_and_found_when_it_is_back(
    server: MilvusLiteServer, store: MilvusStore
) -> None:
    await remember(store, "m")
    server.kill()
    assert await seconds_to_fail(lambda: found(store)) < 0.5
    assert await seconds_to_fail(lambda: found(store)) < 0.05
    assert await seconds_to_fail(lambda: remember(store, "n")) < 0.05
    assert not await store.is_ready()
    server.start()
    assert await seconds_until(lambda: found(store)) < 5.0
    assert await store.is_ready()
    await remember(store, "n")
    assert await found(store) == {"m", "n"}


async def test_a_frozen_server_costs_each_call_no_more_than_its_limit_and_then_nothing(
    mortal: Mortal, store: MilvusStore
) -> None:
    await remember(store, "m")
    with mortal.frozen():
        took = [await seconds_to_fail(lambda: found(store)) for _ in range(6)]
    assert max(took) < TIMEOUTS.search + 0.3
    assert min(took) < 0.05
    assert await seconds_until(lambda: found(store)) < 5.0


async def test_a_server_that_is_frozen_while_we_connect_is_waited_for_no_longer(mortal: Mortal) -> None:
    async with mortal.opened() as store:
        with mortal.frozen():
            assert await seconds_to_fail(lambda: found(store)) < TIMEOUTS.search + 1.0  # the library is imported, too
            assert not await store.is_ready()
        await seconds_until(lambda: found(store))
        await remember(store, "m")
        assert await found(store) == {"m"}


async def test_no_server_is_needed_at_the_start(emptied: Mortal) -> None:
    async with emptied.opened() as store:
        await seconds_to_fail(store.prepare)
        assert not await store.is_ready()
        emptied.server.start()
        await seconds_until(store.prepare)
        await remember(store, "m")
        assert await found(store) == {"m"}


async def test_a_collection_that_was_wiped_is_made_anew(emptied: Mortal) -> None:
    emptied.server.start()
    async with emptied.opened() as store:
        await remember(store, "m")
        emptied.server.kill()
        shutil.rmtree(emptied.data)
        emptied.server.start()
        await seconds_until(lambda: found(store))
        assert await found(store) == set()
        await remember(store, "n")
        assert await found(store) == {"n"}


async def test_two_processes_see_each_others_writes_at_once(mortal: Mortal) -> None:
    async with mortal.opened() as worker, mortal.opened() as filter_:
        for i in range(20):
            await remember(worker, f"m{i}")
            assert len(await found(filter_)) == i + 1
            assert await filter_.count(ANN) == i + 1
        await filter_.delete("ann", ["m0"])
        assert "m0" not in await found(worker)


async def test_processes_that_start_together_make_one_collection(mortal: Mortal) -> None:
    stores = [mortal.opened() for _ in range(6)]
    await asyncio.gather(*(seconds_until(store.prepare) for store in stores))
    await remember(stores[0], "m")
    assert [await found(store) for store in stores] == [{"m"}] * 6
    for store in stores:
        await store.__aexit__(None, None, None)


@pytest.mark.full("kills and restarts a server, or fills it")
async def test_many_users_of_many_memories_lose_no_hit(store: MilvusStore) -> None:
    random = np.random.default_rng(7)
    for user in range(60):
        own = random.standard_normal((20, DIMENSION)).astype(np.float32)
        own /= np.linalg.norm(own, axis=1, keepdims=True)
        await remember(store, *(f"u{user}-{i}" for i in range(20)), user_id=f"u{user}", own=own)
    await asyncio.sleep(0.5)  # an index, if there were one, would be built by now
    for user in range(60):
        assert len(await found(store, f"u{user}")) == 20


async def test_an_index_that_was_cut_short_by_a_kill_is_made_again(emptied: Mortal) -> None:
    emptied.server.start()
    async with emptied.opened() as store:
        await remember(store, *(f"m{i}" for i in range(300)))  # past a flush, which writes an index
    emptied.server.kill()
    indexes = list(emptied.data.rglob("*.idx"))
    assert indexes
    for file in indexes:
        file.write_bytes(b"")
    emptied.server.start()
    async with emptied.opened() as store:
        await seconds_until(store.prepare)
        assert await store.count(ANN) == 300
        assert len(await found(store)) == 100


async def test_vectors_of_another_length_are_a_bad_setting_at_the_start_and_unavailable_in_a_request(
    mortal: Mortal, store: MilvusStore
) -> None:
    await store.prepare()
    async with mortal.opened(dimension=16) as other:
        with pytest.raises(BadSetting, match=r"8 .*16"):
            await other.prepare()
        with pytest.raises(Unavailable):
            await other.search(ANN, vectors(1, 16)[0], limit=1)


async def test_a_cancelled_call_leaves_the_connection_sound(mortal: Mortal, store: MilvusStore) -> None:
    await remember(store, "m")
    with mortal.frozen(), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await found(store)
    assert await found(store) == {"m"}


async def test_calls_and_failures_are_counted_and_no_content_is_logged(
    mortal: Mortal, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    metrics = Metrics(CollectorRegistry())
    async with mortal.opened(metrics=metrics) as store:
        await remember(store, "a-secret-id", user_id="a-secret-user")
        logging.getLogger("pymilvus").addHandler(caplog.handler)  # it hands nothing on to the root logger
        mortal.server.kill()
        await seconds_to_fail(lambda: found(store, "a-secret-user"))
        logging.getLogger("pymilvus").removeHandler(caplog.handler)
    value = metrics.registry.get_sample_value
    assert (value("memproxy_store_seconds_count", {"call": "apply"}) or 0) >= 1
    assert value("memproxy_store_errors_total", {"call": "search"}) == 1
    assert not [record for record in caplog.records if record.name.startswith("pymilvus")]
    printed = "".join(capfd.readouterr()) + caplog.text
    assert "a-secret" not in printed
    assert printed.count("part is unavailable") == 1


@pytest.mark.parametrize("broken", [{"evidence": "no JSON"}, {"status": "of a later version"}, {"metadata": "{"}])
async def test_a_row_that_cannot_be_read_takes_none_of_the_others_along(
    mortal: Mortal, store: MilvusStore, broken: dict[str, str]
) -> None:
    await remember(store, "m1", "m2", "m3")
    client = MilvusClient(mortal.server.uri)
    try:
        [row] = client.query(mortal.collection, filter='id == "m2"', output_fields=["*"])
        client.upsert(mortal.collection, [{**row, **broken}])
    finally:
        client.close()
    assert await found(store) == {"m1", "m3"}
    assert {record.memory.id for record in await store.get("ann", ["m1", "m2", "m3"])} == {"m1", "m3"}
    for loaded in (await store.load(ANN, limit=10), await store.load_few(ANN, most=10) or ()):
        assert {record.memory.id for record in loaded} == {"m1", "m3"}
