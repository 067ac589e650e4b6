"""Rows in Milvus: what its version can do, which index fits their number, and beside which others they may stand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pymilvus
import pytest
from memory_rows import DIMENSION, direction, memory, put
from milvus_kinds import PATIENT, RealMilvus, empty_address, prepared
from prometheus_client import CollectorRegistry

from memory.adapters import row_codec
from memory.adapters.milvus import schema
from memory.adapters.milvus.schema import ORIGIN_PROPERTY, Capabilities, capabilities_of
from memory.adapters.milvus.store import BOUNDED, STRONG, MilvusStore
from memory.errors import BadSetting, Unavailable
from memory.model import Change, ChangeKind, VectorOrigin
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics


@pytest.mark.parametrize(
    ("version", "finds_words", "is_lite", "kinds"),
    [
        ("v2.3.5", False, False, ["Trie"]),
        ("v2.3.5-lite", False, False, ["Trie"]),
        ("v2.4.0", True, False, ["INVERTED"]),
        ("2.6.0-rc1", True, False, ["INVERTED"]),
        ("3", True, False, ["INVERTED"]),
        ("milvus_lite-3.2.2", True, True, []),
    ],
)
def test_a_version_tells_what_it_can_do(version: str, finds_words: bool, is_lite: bool, kinds: list[str]) -> None:
    can = capabilities_of(version)
    assert can == Capabilities(is_lite=is_lite, finds_words=finds_words)
    assert [one.index_type for one in schema.index(pymilvus, can=can) if one.field_name == "user_id"] == kinds


ANN = MemoryFilter("ann")
MINE = VectorOrigin("mine", 8, "0123456789abcdef")
OTHER = VectorOrigin("other", 8, "fedcba9876543210")
WIDER = VectorOrigin("wider", 16)


def opened(server: RealMilvus, name: str, origin: VectorOrigin | None, dimension: int = 8) -> MilvusStore:
    address = server.address(name, origin.dimension if origin else dimension, origin)
    return MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT)


async def put_one(store: MilvusStore, dimension: int = 8, memory_id: str = "m") -> None:
    vector = np.eye(1, dimension, dtype=np.float32)
    await store.apply("ann", [Change(ChangeKind.CREATE, memory(memory_id))], vector)


@pytest.mark.parametrize(
    ("one", "other", "agrees"),
    [
        (MINE, MINE, True),
        (MINE, replace(MINE, model="the same folder elsewhere"), True),
        (MINE, replace(MINE, fingerprint="changed weights"), False),
        (MINE, replace(MINE, fingerprint=""), True),  # a server that serves the model of that name
        (MINE, replace(OTHER, fingerprint=""), False),
        (MINE, replace(MINE, dimension=9), False),
        (MINE, replace(MINE, document_prefix="passage: "), False),
        (MINE, replace(MINE, document_input_type="document"), False),
        (VectorOrigin("", 8), VectorOrigin("", 8), False),  # nobody knows
    ],
)
def test_which_vectors_may_stand_side_by_side(one: VectorOrigin, other: VectorOrigin, agrees: bool) -> None:
    assert one.agrees_with(other) is agrees
    assert other.agrees_with(one) is agrees


@pytest.mark.parametrize("other", [OTHER, WIDER], ids=str)
async def test_another_model_is_refused_with_what_to_do_and_nothing_is_mixed(
    milvus: RealMilvus, collection: str, other: VectorOrigin
) -> None:
    async with opened(milvus, collection, MINE) as mine, opened(milvus, collection, other) as theirs:
        await put_one(mine)
        with pytest.raises(BadSetting) as refused:
            await theirs.prepare()
        for words in (str(MINE), str(other), "memproxy reembed"):
            assert words in str(refused.value)
        with pytest.raises(Unavailable, match="memproxy reembed"):
            await put_one(theirs, other.dimension, "n")
        with pytest.raises(Unavailable, match="memproxy reembed"):
            await theirs.search(ANN, np.eye(1, other.dimension, dtype=np.float32)[0], limit=1)
        assert [r.memory.id for r in await mine.load(ANN, limit=9)] == ["m"]


@pytest.mark.parametrize("kept", ["properties", "description"])
def test_the_record_is_read_from_wherever_a_milvus_keeps_it(kept: str) -> None:
    record = schema.record_of(MINE)
    described = {"properties": record} if kept == "properties" else {"description": record[ORIGIN_PROPERTY]}
    assert schema.origin_of({"fields": [], **described}) == MINE


async def test_without_a_record_vectors_are_of_no_known_model(milvus: RealMilvus, collection: str) -> None:
    async with opened(milvus, collection, None, OTHER.dimension) as unnamed:
        await put_one(unnamed, OTHER.dimension)
    async with opened(milvus, collection, OTHER) as other:
        with pytest.raises(BadSetting, match="memproxy reembed"):
            await other.prepare()


@pytest.mark.parametrize("other", [OTHER, WIDER], ids=str)
async def test_an_empty_collection_takes_another_model_however_many_start_at_once(
    milvus: RealMilvus, collection: str, other: VectorOrigin
) -> None:
    async with opened(milvus, collection, MINE) as mine:
        await put_one(mine)
        await mine.delete("ann", ["m"])
    stores = [opened(milvus, collection, other) for _ in range(5)]
    await asyncio.gather(*(store.prepare() for store in stores))
    for number, store in enumerate(stores):
        await put_one(store, other.dimension, f"m{number}")
    for store in stores:
        assert len(await store.load(ANN, limit=9)) == len(stores)
        await store.__aexit__(None, None, None)
    async with opened(milvus, collection, MINE) as mine:
        with pytest.raises(BadSetting, match="memproxy reembed"):
            await mine.prepare()


async def test_a_part_that_runs_on_while_vectors_are_replaced_writes_none(milvus: RealMilvus, collection: str) -> None:
    async with opened(milvus, collection, MINE) as running:
        await put_one(running)
        await running.delete("ann", ["m"])
        async with opened(milvus, collection, OTHER) as other:  # an empty one starts anew
            await put_one(other, memory_id="theirs")
            with pytest.raises(Unavailable, match="memproxy reembed"):
                await put_one(running, memory_id="mine")
            assert [r.memory.id for r in await other.load(ANN, limit=9)] == ["theirs"]


READS: dict[str, Callable[[MilvusStore], Awaitable[object]]] = {
    "search": lambda store: store.search(ANN, direction(1.0), limit=3),
    "load of a user": lambda store: store.load(ANN, limit=10),
    "load of a small user": lambda store: store.load_few(ANN, most=10),
    "load of a part of a user": lambda store: store.load(ANN, limit=1),
    "refresh by ids": lambda store: store.get("ann", ["m1", "m2"]),
    "memories by ids": lambda store: store.memories("ann", ["m1"]),
    "nearest": lambda store: store.nearest(ANN, np.stack([direction(1.0)]), limit=3),
    "nearest with a word": lambda store: store.nearest(ANN, np.stack([direction(1.0)]), limit=3, words=["content"]),
    "page": lambda store: store.page(ANN, limit=3, cursor=""),
}


class RecordingClient(pymilvus.AsyncMilvusClient):  # type: ignore[misc] # the library is untyped
    """The client, which also records the level of each read; None: that of the collection, which may be any."""

    levels: ClassVar[list[str | None]] = []

    async def search(self, *words: Any, **named: Any) -> Any:
        self.levels.append(named.get("consistency_level"))
        return await super().search(*words, **named)

    async def query(self, *words: Any, **named: Any) -> Any:
        self.levels.append(named.get("consistency_level"))
        return await super().query(*words, **named)


async def test_reads_of_a_request_are_bounded_and_those_that_erasing_needs_are_strong(
    milvus: RealMilvus, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pymilvus, "AsyncMilvusClient", RecordingClient)
    levels: dict[str, set[str | None]] = {}
    address = empty_address(milvus, collection, DIMENSION)
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT) as store:
        await put(await prepared(store), memory("m1"), memory("m2"))
        for name, read in {**READS, "ids": lambda store: store.ids(ANN)}.items():
            RecordingClient.levels.clear()
            assert await read(store), name
            levels[name] = set(RecordingClient.levels)
    assert levels == {**{name: {BOUNDED} for name in READS}, "ids": {STRONG}}


SERVER = capabilities_of("v2.3.5")
LIMIT = schema.EXACT_ROWS_MAX


@pytest.mark.parametrize(
    ("can", "rows", "kind"),
    [
        (SERVER, 0, "FLAT"),
        (SERVER, LIMIT, "FLAT"),
        (SERVER, LIMIT + 1, "HNSW"),
        (capabilities_of("milvus_lite-3.2.2"), LIMIT + 1, "FLAT"),
    ],
)
def test_only_a_server_with_more_rows_than_the_limit_gets_a_graph(can: Capabilities, rows: int, kind: str) -> None:
    [made] = [one for one in schema.index(pymilvus, can=can, rows=rows) if one.field_name == row_codec.VECTOR_FIELD]
    assert made.index_type == kind
    assert schema.index_fits(kind, can=can, rows=rows)
    many = {one: schema.index_fits(one, can=SERVER, rows=LIMIT + 1) for one in ("FLAT", "HNSW", "AUTOINDEX", "")}
    assert many == {"FLAT": False, "HNSW": True, "AUTOINDEX": True, "": True}


async def test_two_processes_see_each_others_writes_at_once(milvus: RealMilvus, collection: str) -> None:
    async with opened(milvus, collection, MINE) as worker, opened(milvus, collection, MINE) as filter_:
        await prepared(worker)
        for number in range(5):
            await put_one(worker, memory_id=f"m{number}")
            assert len(await filter_.load(ANN, limit=9)) == await filter_.count(ANN) == number + 1
        await filter_.delete("ann", ["m0"])
        assert await worker.get("ann", ["m0"]) == []


@pytest.mark.parametrize("broken", [{"evidence": "no JSON"}, {"status": "of a later version"}, {"metadata": "{"}])
async def test_a_row_that_cannot_be_read_takes_none_of_the_others_along(
    milvus_lite: RealMilvus, collection: str, broken: dict[str, str]
) -> None:
    async with opened(milvus_lite, collection, MINE) as store:
        await put(store, memory("m1"), memory("m2"), memory("m3"))
        client = milvus_lite.client()
        [row] = client.query(collection, filter='id == "m2"', output_fields=["*"])
        client.upsert(collection, [{**row, **broken}])
        client.close()
        assert {one.memory.id for one in await store.search(ANN, direction(1.0), limit=9)} == {"m1", "m3"}
        assert {record.memory.id for record in await store.get("ann", ["m1", "m2", "m3"])} == {"m1", "m3"}
        for loaded in (await store.load(ANN, limit=10), await store.load_few(ANN, most=10) or ()):
            assert {record.memory.id for record in loaded} == {"m1", "m3"}
