"""What every memory store finds, by vector, by words, by filter and by claim, and loads of whom: on every adapter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from memory_rows import direction, memory, put

from memory.errors import BadInput
from memory.model import MemoryStatus
from memory.model.claim_filters import FILTER_CHARACTERS_MAX, ClaimFilter
from memory.ports import MemoryFilter, MemoryStore
from memory.ports.paging import all_pages


async def test_search_gives_the_nearest_first_with_their_cosine(store: MemoryStore) -> None:
    near, middle, far = direction(1.0, 0.1), direction(1.0, 1.0), direction(-1.0, 0.1)
    await put(store, memory("far"), memory("near"), memory("middle"), vectors=[far, near, middle])
    found = await store.search(MemoryFilter("ann"), direction(1.0), limit=2)
    assert [c.memory.id for c in found] == ["near", "middle"]
    assert [c.score for c in found] == pytest.approx([float(near[0]), float(middle[0])], abs=1e-5)
    assert all(c.parts == {"dense": c.score} for c in found)
    assert len(await store.search(MemoryFilter("ann"), direction(1.0), limit=50)) == 3
    assert await store.search(MemoryFilter("nobody"), direction(1.0), limit=50) == []


async def test_the_nearest_to_several_vectors_are_found_once_each_with_their_vectors(store: MemoryStore) -> None:
    vectors = [direction(1.0, 0.1), direction(0.1, 1.0), direction(1.0, 1.0), direction(-1.0, -1.0)]
    await put(store, memory("east"), memory("north"), memory("between"), memory("behind"), vectors=vectors)
    await put(store, memory("bob's", user_id="bob"))
    asked = np.stack([direction(1.0), direction(0.0, 1.0)])
    found = {r.memory.id: r.vector for r in await store.nearest(MemoryFilter("ann"), asked, limit=2)}
    assert found.keys() == {"east", "north", "between"}
    np.testing.assert_allclose(found["north"], vectors[1], atol=1e-6)
    assert len(await store.nearest(MemoryFilter("ann"), asked, limit=50)) == 4
    assert await store.nearest(MemoryFilter("ann"), asked, limit=0) == []
    assert await store.nearest(MemoryFilter("ann"), asked[:0], limit=5) == []


async def test_the_nearest_that_hold_a_word_are_found_however_near_others_are(store: MemoryStore) -> None:
    contents = ["Golf is what I drive", "my golf cart", "no such word", "我住在杭州", 'a "100%_sure" \\ bet']
    await put(
        store,
        *(memory(key, content=content) for key, content in zip("abcde", contents, strict=True)),
        *(memory(f"near {n}") for n in range(9)),
        vectors=[direction(0.0, 1.0)] * 5 + [direction(1.0)] * 9,
    )
    holding = {("golf",): {"a", "b"}, ("住在", "Golf"): {"a", "d"}, ("100",): {"e"}, ("zebra",): set()}
    for words, expected in holding.items():
        found = await store.nearest(MemoryFilter("ann"), direction(1.0)[None], words=words, limit=6)
        assert {record.memory.id for record in found} == expected


async def assert_finds(store: MemoryStore, cases: dict[MemoryFilter, set[str]]) -> None:
    """Whatever reads memories by a filter reads these."""
    for where, expected in cases.items():
        assert {c.memory.id for c in await store.search(where, direction(1.0), limit=50)} == expected, where
        assert {r.memory.id for r in await store.load(where, limit=50)} == expected, where
        few = await store.load_few(where, most=len(expected))
        assert few is not None, where
        assert {r.memory.id for r in few} == expected, where
        assert not expected or await store.load_few(where, most=len(expected) - 1) is None, where
        assert {r.memory.id for r in await store.nearest(where, direction(1.0)[None], limit=50)} == expected, where
        assert {m.id for m in (await store.page(where, limit=50, cursor="")).items} == expected, where
        assert await store.count(where) == len(expected), where
        assert set(await store.ids(where)) == expected, where


async def test_user_status_project_agent_and_type_bound_what_is_found(store: MemoryStore) -> None:
    await put(
        store,
        memory("none"),
        memory("kitchen", project_id="kitchen"),
        memory("garden", project_id="garden", memory_type="episodic"),
        memory("cook", project_id="kitchen", agent_id="cook"),
        memory("smith", agent_id="smith", memory_type="procedural"),
        memory("old", project_id="kitchen", status=MemoryStatus.SUPERSEDED),
        memory("away", status=MemoryStatus.ARCHIVED),
        memory("raw", status=MemoryStatus.RAW),
        memory("bob's", user_id="bob", project_id="kitchen"),
        memory("late", project_id="attic", at=1_700_000_000.5),
    )
    active = {"none", "kitchen", "garden", "cook", "smith", "late"}
    cases = {
        MemoryFilter("ann"): active,
        MemoryFilter("ann", status=None): active | {"old", "away"},
        MemoryFilter("ann", status=None, with_archived=False): active | {"old"},
        MemoryFilter("ann", status=None, with_raw=True): active | {"old", "away", "raw"},
        MemoryFilter("ann", status=MemoryStatus.SUPERSEDED): {"old"},
        MemoryFilter("ann", status=MemoryStatus.ARCHIVED): {"away"},
        MemoryFilter("ann", status=MemoryStatus.RAW): {"raw"},
        MemoryFilter("ann", project_id="kitchen"): {"none", "kitchen", "cook", "smith"},
        MemoryFilter("ann", project_id="kitchen", exact_project=True): {"kitchen", "cook"},
        MemoryFilter("ann", exact_project=True): {"none", "smith"},
        MemoryFilter("ann", project_id="kitchen", exact_project=True, status=None): {"kitchen", "cook", "old"},
        MemoryFilter("ann", agent_id="cook"): {"none", "kitchen", "garden", "cook", "late"},
        MemoryFilter("ann", memory_types=("episodic", "procedural")): {"garden", "smith"},
        MemoryFilter("ann", memory_types=("reflective",)): set(),
        MemoryFilter("bob", project_id="kitchen"): {"bob's"},
    }
    await assert_finds(store, cases)
    assert [record.memory.id for record in await store.get("ann", ["raw"])] == ["raw"]


async def test_a_source_and_the_times_at_which_it_was_said_bound_what_is_found(store: MemoryStore) -> None:
    rows = [memory("may", at=50.0, source="answer"), memory("june", at=60.0, source="answer"), memory("july", at=70.0)]
    await put(store, *rows)
    cases = {
        MemoryFilter("ann", source="answer"): {"may", "june"},
        MemoryFilter("ann", said_within=((60.0, 70.0),)): {"june"},  # without its end
        MemoryFilter("ann", said_within=((0.0, 55.0), (70.0, math.inf))): {"may", "july"},
        MemoryFilter("ann", source="answer", said_within=((-math.inf, 60.0),)): {"may"},
        MemoryFilter("ann", other_source="answer"): {"july"},
        MemoryFilter("ann", source='x" or user_id != "'): set(),
    }
    await assert_finds(store, cases)


async def test_a_thousand_memories_come_whole_flushed_or_not(store: MemoryStore) -> None:
    for start in range(0, 950, 150):  # some of it flushed, the rest not
        await put(store, *(memory(f"m{n}") for n in range(start, start + 150)))
    found = await store.load_few(MemoryFilter("ann"), most=1_050)
    assert found is not None
    assert {record.memory.id for record in found} == {f"m{n}" for n in range(1_050)}


OF_ANN = MemoryFilter("ann")
FIELDS = ("subject", "name", "attribute", "value")


async def ids(store: MemoryStore, where: MemoryFilter = OF_ANN, **claim: str) -> list[str]:
    """All pages of two."""
    found, wanted = list[str](), ClaimFilter(**claim)
    async for page in all_pages(lambda cursor: store.page(where, limit=2, cursor=cursor, claim=wanted)):
        found += [one.id for one in page.items]
        assert not page.next_cursor or len(page.items) == 2
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


async def test_a_field_is_found_by_its_own_text_whatever_that_is(store: MemoryStore) -> None:
    texts = r'" \ \" % _ %"] ["home" \u0022 {0} none user Tom To T% T_m null true [] ss 猫'.split(" ")
    texts += ['" or user_id != "', "'", "\n", "\x00", "\u2028"]
    rows = [memory(f"m{n}", at=n, subject=one, name=one, attribute=one, values=(one,)) for n, one in enumerate(texts)]
    await put(store, *rows, memory("other", at=99, subject="pet", name="Rex", attribute="food", values=("meat",)))
    for field in FIELDS:
        found = [await ids(store, **{field: one}) for one in texts]
        assert [f"m{n}" in some and "other" not in some for n, some in enumerate(found)] == [True] * len(texts), field
