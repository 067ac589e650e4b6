"""Pages of memories by their claim, the same on every store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from memory_rows import DIMENSION, memory, put
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.errors import BadInput
from memory.model import Memory, MemoryStatus
from memory.model.claim_filters import FILTER_CHARACTERS_MAX, ClaimFilter
from memory.ports import MemoryFilter, MemoryStore
from memory.ports.paging import all_pages
from memory.runtime.metrics import Metrics

HOSTILE = [
    *('"', "\\", '\\"', "'", "%", "_", '%"]', '["home"', '" or user_id != "', "\\u0022", "{0}", "\n", "\x00", "\u2028"),
    *(
        "home",
        "none",
        "user",
        "Tom",
        "tom",
        "ＴＯＭ",
        "Tom!",
        "To",
        "T%",
        "T_m",
        "null",
        "true",
        "[]",
        "ß",
        "SS",
        "猫",
        "",
    ),
]
OF_ANN = MemoryFilter("ann")
FIELDS = ("subject", "name", "attribute", "value")
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=12)
CLAIMS = st.fixed_dictionaries(
    {"subject": TEXTS, "name": TEXTS, "attribute": TEXTS, "values": st.lists(TEXTS, max_size=3)}
)


async def ids(store: MemoryStore, where: MemoryFilter = OF_ANN, **claim: str) -> list[str]:
    """All pages of two."""
    found, wanted = list[str](), ClaimFilter(**claim)
    async for page in all_pages(lambda cursor: store.page(where, limit=2, cursor=cursor, claim=wanted)):
        found += [one.id for one in page.memories]
        assert not page.next_cursor or len(page.memories) == 2
    return found


async def test_each_field_is_compared_whole_and_folded(store: MemoryStore) -> None:
    await put(
        store,
        memory("cat", at=5, subject="pet", name="Tom", attribute="name", values=("Tom",)),
        memory("dog", at=4, subject="pet", name="Tommy", attribute="food", values=("red meat", "Fish")),
        memory("self", at=3, attribute="home", values=("Bonn",)),
        memory("plain", at=2),
        memory("bobs", at=1, user_id="bob", subject="pet", name="Tom", attribute="name", values=("Tom",)),
    )
    assert await ids(store) == ["cat", "dog", "self", "plain"]
    assert await ids(store, subject="pet") == ["cat", "dog"]
    assert await ids(store, name="tom") == ["cat"]
    assert await ids(store, name="ＴＯＭ.") == ["cat"]
    assert await ids(store, value="fish") == ["dog"]
    assert await ids(store, value=" Red  Meat!") == ["dog"]
    assert await ids(store, attribute="none") == ["plain"]
    assert await ids(store, subject="pet", attribute="food", value="fish", name="tommy") == ["dog"]
    assert await ids(store, subject="user", value="fish") == []
    for part in ("To", "Tom%", "T_m", "meat", "red", "?"):
        assert await ids(store, name=part) == await ids(store, value=part) == []


async def test_it_is_combined_with_the_other_filter_and_with_pages(store: MemoryStore) -> None:
    home = {"attribute": "home", "values": ("Bonn",)}
    rows = [memory(f"m{n}", at=n, memory_type=("semantic", "episodic")[n % 2], **home) for n in range(9)]
    old = memory("old", at=20, status=MemoryStatus.SUPERSEDED, **home)
    await put(store, *rows, old, memory("other", at=30, attribute="work"))
    assert await ids(store, value="bonn") == [f"m{n}" for n in range(8, -1, -1)]
    assert await ids(store, MemoryFilter("ann", memory_types=("episodic",)), value="bonn") == ["m7", "m5", "m3", "m1"]
    assert await ids(store, MemoryFilter("ann", status=MemoryStatus.SUPERSEDED), attribute="home") == ["old"]
    assert await ids(store, MemoryFilter("bob"), attribute="home") == []


@pytest.mark.parametrize("field", FIELDS)
def test_a_text_beyond_the_limit_is_bad_input(field: str) -> None:
    ClaimFilter(**{field: "x" * FILTER_CHARACTERS_MAX})
    with pytest.raises(BadInput, match=field):
        ClaimFilter(**{field: "x" * (FILTER_CHARACTERS_MAX + 1)})


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


async def found_in(store: MemoryStore, rows: list[Memory], wanted: list[ClaimFilter]) -> list[list[str]]:
    await put(store, *rows)
    where = MemoryFilter(rows[0].user_id)
    pages = [await store.page(where, limit=20, cursor="", claim=claim) for claim in wanted]
    return [[one.id.partition("/")[2] for one in page.memories] for page in pages]


@pytest.mark.slow("some hundred queries of a Milvus Lite server")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@example([{"subject": text, "name": text, "attribute": text, "values": [text]} for text in HOSTILE[:20]], "value")
@given(st.lists(CLAIMS, min_size=1, max_size=6), st.sampled_from(FIELDS))
def test_both_stores_find_the_same_whatever_the_text(
    milvus_lite: MilvusLiteServer, collection: str, runner: asyncio.Runner, claims: list[dict[str, object]], field: str
) -> None:
    user = uuid4().hex
    rows = [
        memory(f"{user}/{n}", user_id=user, at=float(n), **{**claim, "values": tuple(claim["values"])})  # type: ignore[arg-type]
        for n, claim in enumerate(claims)
    ]
    own = [next(iter(row.values), "") if field == "value" else str(getattr(row, field)) for row in rows]
    wanted = [ClaimFilter(**{field: text}) for text in (*own, *HOSTILE[:6])]

    async def both() -> tuple[list[list[str]], list[list[str]]]:
        address = MilvusAddress(milvus_lite.uri, collection, DIMENSION)
        async with MilvusStore(address, metrics=Metrics(CollectorRegistry())) as milvus:
            return await found_in(milvus, rows, wanted), await found_in(
                InMemoryStore(dimension=DIMENSION), rows, wanted
            )

    in_milvus, in_memory = runner.run(both())
    assert in_milvus == in_memory
    assert all(str(n) in in_milvus[n] for n in range(len(rows)))
