"""A real Milvus server: stopped, frozen, and used with collections of earlier releases; it admits us or does not."""

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
from milvus_standalone import CERTIFICATE, SERVER_IN_SOAK, TOKEN, MilvusServer
from older_collections import older_collection
from prometheus_client import CollectorRegistry

from memory.adapters import row_codec
from memory.adapters.milvus import schema
from memory.adapters.milvus.connection import MilvusAccess, MilvusAddress
from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.adapters.milvus.store import MilvusStore, MilvusTimeouts
from memory.errors import BadSetting, MemproxyError, Unavailable
from memory.model import Memory, Record, Vector, VectorOrigin
from memory.ports import MemoryFilter, Outdated
from memory.runtime.metrics import Metrics
from memory.service.reembedding import Migrate, Switch

pytestmark = pytest.mark.soak(SERVER_IN_SOAK)

SEARCH_SECONDS = 0.5
LEASE_SECONDS = 10  # until a server that was killed and started takes its own place again
RETURN_SECONDS_MAX = 90.0  # loads its collections again, after that
ANN = MemoryFilter("ann")
ORIGIN = VectorOrigin("the same", DIMENSION)
COUNT = 250  # more than one batch
PATCHED_LIMIT = 100
USERS, ROWS_OF_EACH = 4, 30  # more rows than the patched limit
HITS = 10


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


async def test_a_server_that_was_killed_is_found_again_with_all_of_it(mortal: MilvusServer, collection: str) -> None:
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


async def test_a_frozen_server_costs_one_search_its_limit(store: MilvusStore, milvus_server: MilvusServer) -> None:
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


async def test_databases_are_apart_and_tls_is_checked(
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


def stored() -> list[Memory]:
    return [memory(f"m{number}", user_id=f"user-{number % 7}") for number in range(COUNT)]


@pytest.fixture
def older(milvus_server: MilvusServer, collection: str) -> str:
    rows = [row_codec.row_of(Record(one, direction(1.0, float(number)))) for number, one in enumerate(stored())]
    older_collection(milvus_server, collection, ORIGIN, rows)
    return collection


def of(server: MilvusServer, collection: str) -> MilvusAddress:
    return server.address(collection, DIMENSION, ORIGIN)


def migration(server: MilvusServer, collection: str) -> MilvusReembedding:
    return MilvusReembedding(of(server, collection), wanted=ORIGIN, metrics=Metrics(CollectorRegistry()))


async def nobody_else() -> None:
    return


async def test_parts_refuse_it_and_a_run_that_was_cut_off_is_continued(milvus_server: MilvusServer, older: str) -> None:
    async with opened(of(milvus_server, older)) as store:
        with pytest.raises(BadSetting, match=r"schema version 1.*memproxy migrate"):
            await store.prepare()

    def cut(done: int, total: int) -> None:
        assert total == COUNT
        if done >= COUNT // 2:
            raise Unavailable("milvus", "cut off by the test")

    async with migration(milvus_server, older) as first:
        with pytest.raises(Unavailable, match="cut off"):
            await Migrate(first, wanted=ORIGIN).run(advance=cut, check_alone=nobody_else)
        assert (await first.status()).outdated is Outdated.SCHEMA
    seen: list[tuple[int, int]] = []
    async with migration(milvus_server, older) as second:
        done = await Migrate(second, wanted=ORIGIN).run(
            advance=lambda *progress: seen.append(progress), check_alone=nobody_else
        )
        assert 0 < done.copied < COUNT
        assert done.status.embedded + done.copied == COUNT
        assert seen[-1] == (COUNT, COUNT)
        assert (await second.status()).outdated is None
    async with opened(of(milvus_server, older)) as store:
        await prepared(store)
        records = [
            record for number in range(7) for record in await store.load(MemoryFilter(f"user-{number}"), limit=COUNT)
        ]
        assert {one.memory.id: one.memory for one in records} == {one.id: one for one in stored()}
        for one in records:
            assert one.vector.tolist() == pytest.approx(direction(1.0, float(one.memory.id[1:])).tolist())


async def test_another_model_is_sent_to_reembed(milvus_server: MilvusServer, older: str) -> None:
    other = VectorOrigin("another", DIMENSION)
    address = milvus_server.address(older, DIMENSION, other)
    async with MilvusReembedding(address, wanted=other, metrics=Metrics(CollectorRegistry())) as store:
        with pytest.raises(BadSetting, match="memproxy reembed"):
            await Migrate(store, wanted=other).run(advance=lambda *_: None, check_alone=nobody_else)


async def test_a_collection_of_a_later_release_is_named(
    milvus_server: MilvusServer, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        later.setattr(schema, "SCHEMA_VERSION", schema.SCHEMA_VERSION + 1)
        async with opened(of(milvus_server, collection)) as store:
            await prepared(store)
    async with opened(of(milvus_server, collection)) as store:
        with pytest.raises(BadSetting, match="later release"):
            await store.prepare()


def vectors(seed: int) -> list[Vector]:
    made = np.random.default_rng(seed).normal(size=(USERS * ROWS_OF_EACH, DIMENSION)).astype(np.float32)
    return list(made / np.linalg.norm(made, axis=1, keepdims=True))


async def migrated(server: MilvusServer, collection: str) -> Switch:
    async with migration(server, collection) as run:
        return await Migrate(run, wanted=ORIGIN).run(advance=lambda *_: None, check_alone=nobody_else)


async def hits_of_all(store: MilvusStore) -> list[list[str]]:
    """What each user's searches return, also those of one project."""
    filters = [MemoryFilter(f"user-{n}", project_id=project) for n in range(USERS) for project in ("", "boats")]
    return [
        [one.memory.id for one in await store.search(where, vector, limit=HITS)]
        for where in filters
        for vector in vectors(seed=2)[:HITS]
    ]


def index_kind(server: MilvusServer, collection: str) -> str:
    client = server.client()
    try:
        return str(client.describe_index(collection, row_codec.VECTOR_FIELD)["index_type"])
    finally:
        client.close()


async def test_a_collection_that_outgrew_its_index_is_migrated_once_and_loses_nothing(
    milvus_server: MilvusServer, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        memory(f"m{n}", user_id=f"user-{n % USERS}", project_id="boats" if n % 3 else "cars")
        for n in range(USERS * ROWS_OF_EACH)
    ]
    async with opened(of(milvus_server, collection)) as store:
        await put(await prepared(store), *rows, vectors=vectors(seed=1))
        before = await hits_of_all(store)
    assert all(len(hits) == HITS for hits in before)
    assert (await migrated(milvus_server, collection)).copied == 0
    assert index_kind(milvus_server, collection) == "FLAT"

    monkeypatch.setattr(schema, "EXACT_ROWS_MAX", PATCHED_LIMIT)
    async with opened(of(milvus_server, collection)) as store:
        await prepared(store)  # parts still start
    assert (await migrated(milvus_server, collection)).copied == len(rows)
    assert index_kind(milvus_server, f"{collection}__2") == "HNSW"
    async with opened(of(milvus_server, collection)) as store:
        assert await hits_of_all(await prepared(store)) == before

    again = await migrated(milvus_server, collection)
    assert (again.status.outdated, again.copied) == (None, 0)
    assert index_kind(milvus_server, f"{collection}__2") == "HNSW"
