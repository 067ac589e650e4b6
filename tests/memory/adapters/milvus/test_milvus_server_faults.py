"""A real Milvus server that is stopped, started again and frozen while it is used, and that admits us or does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from memory_rows import DIMENSION, direction, memory, put
from milvus_kinds import PATIENT, prepared
from milvus_standalone import CERTIFICATE, TOKEN, MilvusServer
from prometheus_client import CollectorRegistry

from memory.adapters.milvus.connection import MilvusAccess, MilvusAddress
from memory.adapters.milvus.store import MilvusStore, MilvusTimeouts
from memory.errors import BadSetting, MemproxyError, Unavailable
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics

SEARCH_SECONDS = 0.5
LEASE_SECONDS = 10  # until a server that was killed and started takes its own place again
RETURN_SECONDS_MAX = 90.0  # loads its collections again, after that
ANN = MemoryFilter("ann")


def opened(address: MilvusAddress, *, search: float = PATIENT.search) -> MilvusStore:
    timeouts = MilvusTimeouts(search=search, read=PATIENT.read, write=PATIENT.write)
    return MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=timeouts)


@pytest.fixture
async def store(milvus_server: MilvusServer, collection: str) -> AsyncIterator[MilvusStore]:
    async with opened(milvus_server.address(collection, DIMENSION), search=SEARCH_SECONDS) as store:
        await put(await prepared(store), memory("m"))
        yield store


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[MilvusServer]:
    """One of its own: for a minute after a kill, a server makes no new collection."""
    server = MilvusServer(tmp_path / "mortal", lease_seconds=LEASE_SECONDS)
    server.start()
    yield server
    server.kill()


async def found(store: MilvusStore) -> set[str]:
    return {candidate.memory.id for candidate in await store.search(ANN, direction(1.0), limit=10)}


async def seconds_until(call: Callable[[], Awaitable[object]]) -> float:
    began = time.monotonic()
    async with asyncio.timeout(RETURN_SECONDS_MAX):
        while True:
            try:
                await call()
                return time.monotonic() - began
            except Unavailable:
                await asyncio.sleep(0.05)


async def test_a_server_that_is_killed_and_started_again_is_found_again_with_all_that_was_written(
    mortal: MilvusServer, collection: str
) -> None:
    async with opened(mortal.address(collection, DIMENSION), search=SEARCH_SECONDS) as store:
        await put(await prepared(store), memory("m"))
        mortal.kill()
        began = time.monotonic()
        with pytest.raises(Unavailable):
            await found(store)
        assert time.monotonic() - began < SEARCH_SECONDS + 0.5
        assert not await store.is_ready()
        await asyncio.to_thread(mortal.start)
        await seconds_until(lambda: found(store))
        assert await found(store) == {"m"}
        await seconds_until(lambda: put(store, memory("n")))
        assert await found(store) == {"m", "n"}


async def test_a_frozen_server_costs_a_search_its_limit_and_the_next_ones_nothing(
    store: MilvusStore, milvus_server: MilvusServer
) -> None:
    took = []
    milvus_server.freeze()
    try:
        for _ in range(6):
            began = time.monotonic()
            with pytest.raises(Unavailable):
                await found(store)
            took.append(time.monotonic() - began)
    finally:
        milvus_server.thaw()
    assert max(took) < SEARCH_SECONDS + 0.3
    assert min(took) < 0.05  # the breaker is open
    await seconds_until(lambda: found(store))
    assert await found(store) == {"m"}


async def test_writes_are_seen_by_bounded_reads_of_another_process_as_soon_as_they_return(
    store: MilvusStore, milvus_server: MilvusServer, collection: str
) -> None:
    async with opened(milvus_server.address(collection, DIMENSION)) as reader:
        await prepared(reader)
        for number in range(5):
            await put(store, memory(f"n{number}"))
            assert f"n{number}" in await found(reader)
            await store.delete("ann", [f"n{number}"])
            assert f"n{number}" not in await found(reader)


@pytest.mark.parametrize(
    ("access", "kind_of_error", "says"),
    [
        (MilvusAccess(token="root:wrong"), Unavailable, "refuses the token.*MEMPROXY_MEMORY_MILVUS_TOKEN"),
        (MilvusAccess(), Unavailable, "refuses the token"),
        (MilvusAccess(token=TOKEN, database="none_such"), BadSetting, "no database 'none_such'"),
    ],
    ids=["wrong token", "no token", "no such database"],
)
async def test_whoever_is_not_admitted_learns_why_and_never_what_the_token_was(
    milvus_server: MilvusServer, collection: str, access: MilvusAccess, kind_of_error: type[MemproxyError], says: str
) -> None:
    address = replace(milvus_server.address(collection, DIMENSION), access=access)
    assert "wrong" not in repr(address)
    async with opened(address) as store:
        with pytest.raises(kind_of_error, match=says) as refused:
            await store.prepare()
        assert "root" not in str(refused.value)


async def test_databases_share_nothing_and_tls_is_verified(
    milvus_server: MilvusServer, collection: str, tmp_path: Path
) -> None:
    client = milvus_server.client()
    client.create_database(f"team_{collection}")
    client.close()
    inside = MilvusAccess(TOKEN, f"team_{collection}", str(CERTIFICATE))
    address = MilvusAddress(milvus_server.tls_uri, collection, DIMENSION, access=inside)
    async with opened(address) as store:
        await put(await prepared(store), memory("of the team"))
        assert await found(store) == {"of the team"}
    async with opened(milvus_server.address(collection, DIMENSION)) as outside:
        await prepared(outside)
        assert await found(outside) == set()
    stranger = replace(inside, certificate_authority=str(CERTIFICATE.with_name("elsewhere.pem")))
    async with opened(replace(address, access=stranger)) as store:
        with pytest.raises(Unavailable):
            await store.prepare()


async def test_a_filtered_search_loses_no_hit_among_many_users(milvus_server: MilvusServer, collection: str) -> None:
    random = np.random.default_rng(1)
    async with opened(milvus_server.address(collection, DIMENSION)) as store:
        await prepared(store)
        matrix = random.normal(size=(40, 50, DIMENSION)).astype(np.float32)
        matrix /= np.linalg.norm(matrix, axis=2, keepdims=True)
        await asyncio.gather(
            *(
                put(store, *(memory(f"{user}-{n}", user_id=f"u{user}") for n in range(50)), vectors=list(matrix[user]))
                for user in range(40)
            )
        )
        for user in range(0, 40, 5):
            asked = matrix[user, 0]
            hits = await store.search(MemoryFilter(f"u{user}"), asked, limit=10)
            exact = np.argsort(-(matrix[user] @ asked))[:10]
            assert [hit.memory.id for hit in hits] == [f"{user}-{n}" for n in exact]
