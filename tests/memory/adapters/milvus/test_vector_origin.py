"""A collection says what its vectors were made with, and takes no others: at the start, in a request, in the doctor."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from memory_rows import memory
from milvus_kinds import PATIENT, RealMilvus
from prometheus_client import CollectorRegistry

from memory.adapters.milvus import schema
from memory.adapters.milvus.schema import ORIGIN_PROPERTY
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.models.embedding_model import PACKAGED_ORIGIN
from memory.errors import BadSetting, Unavailable
from memory.model import Change, ChangeKind, VectorOrigin
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics

ANN = MemoryFilter("ann")
MINE = VectorOrigin("mine", 8, "0123456789abcdef")
OTHER = VectorOrigin("other", 8, "fedcba9876543210")
WIDER = VectorOrigin("wider", 16)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return "c" + "".join(c for c in request.node.name if c.isalnum())[-80:]


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


@pytest.mark.parametrize("other", [OTHER, WIDER, replace(MINE, document_prefix="passage: ")], ids=str)
async def test_another_model_is_refused_with_what_to_do_and_nothing_is_mixed(
    milvus: RealMilvus, name: str, other: VectorOrigin
) -> None:
    async with opened(milvus, name, MINE) as mine, opened(milvus, name, other) as theirs:
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


async def test_a_collection_from_before_the_record_holds_vectors_of_the_packaged_model(
    milvus: RealMilvus, name: str
) -> None:
    async with opened(milvus, name, None, 384) as early:
        await put_one(early, 384)
    async with opened(milvus, name, PACKAGED_ORIGIN) as packaged:
        await packaged.prepare()
        assert len(await packaged.load(ANN, limit=9)) == 1
    async with opened(milvus, name, replace(OTHER, dimension=384)) as other:
        with pytest.raises(BadSetting, match="all-MiniLM-L6-v2"):
            await other.prepare()


@pytest.mark.parametrize("other", [OTHER, WIDER], ids=str)
async def test_an_empty_collection_takes_another_model_however_many_start_at_once(
    milvus: RealMilvus, name: str, other: VectorOrigin
) -> None:
    async with opened(milvus, name, MINE) as mine:
        await put_one(mine)
        await mine.delete("ann", ["m"])
    stores = [opened(milvus, name, other) for _ in range(5)]
    await asyncio.gather(*(store.prepare() for store in stores))
    for number, store in enumerate(stores):
        await put_one(store, other.dimension, f"m{number}")
    for store in stores:
        assert len(await store.load(ANN, limit=9)) == len(stores)
        await store.__aexit__(None, None, None)
    async with opened(milvus, name, MINE) as mine:
        with pytest.raises(BadSetting, match="memproxy reembed"):
            await mine.prepare()


async def test_a_part_that_runs_on_while_its_vectors_are_replaced_writes_none_of_its_own(
    milvus: RealMilvus, name: str
) -> None:
    async with opened(milvus, name, MINE) as running:
        await put_one(running)
        await running.delete("ann", ["m"])
        async with opened(milvus, name, OTHER) as other:  # an empty one starts anew
            await put_one(other, memory_id="theirs")
            with pytest.raises(Unavailable, match="memproxy reembed"):
                await put_one(running, memory_id="mine")
            assert [r.memory.id for r in await other.load(ANN, limit=9)] == ["theirs"]
