"""What every memory store promises, on every adapter: the one in memory, and Milvus Lite as a real server process."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from memory_rows import DIMENSION, direction, memory, put

from memory.errors import BadInput, Conflict, MemoryRefused
from memory.model import (
    CONTENT_CHARACTERS_MAX,
    ID_BYTES_MAX,
    Change,
    ChangeKind,
    Evidence,
    Memory,
    MemoryStatus,
    statement_key,
)
from memory.ports import MemoryFilter, MemoryStore
from memory.ports.paging import all_pages

FULL = Memory(
    id="full",
    user_id="ann",
    content='A "quoted" C:\\path, a line\nbreak, a tab\t, NUL \x00, 猫 and 🐈',
    created_at=1_700_000_000.123456,
    updated_at=1_700_000_001.25,
    said_at=1_699_999_999.9,
    project_id="kitchen",
    session_id="s-1",
    agent_id="cook",
    memory_type="episodic",
    category="event",
    source="api",
    status=MemoryStatus.SUPERSEDED,
    importance=0.7,
    confidence=0.1,
    access_count=3,
    valid_from=0.0,
    invalid_at=-86_400.5,
    superseded_at=1_700_000_002.0,
    superseded_by="other",
    subject="my sister",
    evidence=(Evidence('He said "猫"', "turn-1"), Evidence("lone \ud83d surrogate", "turn-2", "assistant")),
    utc_offset=19_800,
    metadata={"tags": ["a", 1, 2.5, None, True], "nested": {"键": "值"}, "big": 2**60},
)


async def test_a_memory_comes_back_exactly_as_it_was_written(store: MemoryStore) -> None:
    vector = direction(0.3, 0.4, -0.5)
    await put(store, FULL, memory("plain"), vectors=[vector, direction(1.0)])
    full, plain = await store.get("ann", ["full", "plain"])
    assert full.memory == FULL
    assert plain.memory == memory("plain")
    assert full.vector.dtype == np.float32
    np.testing.assert_allclose(full.vector, vector, atol=1e-7)


async def test_a_shared_project_owns_memories_as_a_user_does_and_no_user_reaches_them(store: MemoryStore) -> None:
    project = replace(memory("shared"), user_id=" project/0123")
    await put(store, project, memory("own"))
    assert [one.memory for one in await store.get(project.user_id, ["shared", "own"])] == [project]
    where = MemoryFilter(project.user_id)
    assert await store.ids(where) == ["shared"]
    assert [one.memory for one in await store.load(where, limit=9)] == [project]
    assert [one.memory.id for one in await store.search(where, direction(1.0), limit=9)] == ["shared"]
    for user in ("project/0123", "ann", "0123", "project/0123\u00a0x", '" project/0123"'):
        assert await store.get(user, ["shared"]) == []
        assert await store.count(MemoryFilter(user, status=None)) == (1 if user == "ann" else 0)
        await store.delete(user, ["shared"])
    assert await store.count(where) == 1


async def test_the_longest_content_fits_in_every_script_and_half_a_character_is_replaced(store: MemoryStore) -> None:
    longest = memory("long", content="🐈" * CONTENT_CHARACTERS_MAX)
    await put(store, longest, memory("half", content="half \ud83d of a cat" + "\udc00" * 7_980))
    long, half = await store.get("ann", ["long", "half"])
    assert long.memory == longest
    assert half.memory.content.startswith("half \ufffd of a cat")


async def test_get_keeps_the_order_asked_for_and_leaves_out_what_is_not_there(store: MemoryStore) -> None:
    await put(store, *(memory(f"m{i}") for i in range(5)))
    found = await store.get("ann", ["m3", "no such", "m0", "m4", "", "x" * 5_000, "tab\t", '"] or id != "'])
    assert [record.memory.id for record in found] == ["m3", "m0", "m4"]
    assert await store.get("ann", []) == []
    without_vectors = await store.memories("ann", ["m3", "no such", "m0", "m4", "", "tab\t", '"] or id != "'])
    assert without_vectors == [record.memory for record in found]
    assert await store.memories("ann", []) == []
    assert await store.memories("bob", ["m3"]) == []


async def test_a_thousand_of_the_longest_ids_are_written_and_got(store: MemoryStore) -> None:
    ids = [f"{i:04d}".ljust(ID_BYTES_MAX, '"\\'[i % 2]) for i in range(1_001)]
    await put(store, *map(memory, ids))  # in an expression, they are longer still
    assert [record.memory.id for record in await store.get("ann", ids)] == ids
    assert [one.id for one in await store.memories("ann", ids[::-1])] == ids[::-1]


async def test_what_is_applied_is_found_at_once_and_applying_twice_changes_nothing(store: MemoryStore) -> None:
    for i in range(3):
        for _ in range(2):
            await put(store, memory(f"m{i}"))
        assert len(await store.search(MemoryFilter("ann"), direction(1.0), limit=50)) == i + 1
        assert await store.count(MemoryFilter("ann")) == i + 1


async def test_an_update_replaces_the_whole_row_and_its_vector(store: MemoryStore) -> None:
    await put(store, memory("m", project_id="kitchen"), memory("gone"))
    newer = memory("m", content="something else", updated_at=1_700_000_009.0)
    await put(store, newer, vectors=[direction(0.0, 1.0)])
    await store.delete("ann", ["gone"])
    for records in (await store.get("ann", ["m"]), await store.load_few(MemoryFilter("ann", status=None), most=10)):
        assert records is not None
        assert [record.memory for record in records] == [newer]
        np.testing.assert_allclose(records[0].vector, direction(0.0, 1.0), atol=1e-7)
    assert await store.same_statement(MemoryFilter("ann"), statement_key("content of m")) is None


async def test_a_write_that_is_stopped_right_before_it_is_sent_leaves_no_row(store: MemoryStore) -> None:
    def stop() -> None:
        raise Conflict("no longer ours")

    change = [Change(ChangeKind.CREATE, memory("m"))]
    with pytest.raises(Conflict, match="no longer ours"):
        await store.apply("ann", change, direction(1.0)[None], before_each=stop)
    assert await store.get("ann", ["m"]) == []
    looks: list[int] = []
    await store.apply("ann", change, direction(1.0)[None], before_each=lambda: looks.append(1))
    assert len(await store.get("ann", ["m"])) == len(looks) == 1


async def test_load_and_page_go_from_newest_to_oldest_by_time_then_id(store: MemoryStore) -> None:
    await put(store, *(memory(f"m{i}", at=1_000.0 + i // 2) for i in range(6)))
    newest_first = ["m5", "m4", "m3", "m2", "m1", "m0"]
    assert await store.ids(MemoryFilter("ann")) == newest_first
    assert [r.memory.id for r in await store.load(MemoryFilter("ann"), limit=4)] == newest_first[:4]
    pages = all_pages(lambda cursor: store.page(MemoryFilter("ann"), limit=3, cursor=cursor))
    found = [[one.id for one in page.items] async for page in pages]
    assert found == [newest_first[:3], newest_first[3:]]  # the last has no cursor although it is full
    first = await store.page(MemoryFilter("ann"), limit=2, cursor="")
    await put(store, memory("newer", at=5_000.0))
    await store.delete("ann", ["m4", "m3"])
    second = await store.page(MemoryFilter("ann"), limit=2, cursor=first.next_cursor)
    assert [m.id for m in second.items] == ["m2", "m1"], "it goes on where it was although rows came and went"
    for cursor in ("x", "%%%", "bnVsbA", "WzEsMl0", "WyJhIiwgImIiXQ", "[" * 9_000, "é", "W05hTiwgIm0iXQ"):
        with pytest.raises(BadInput):
            await store.page(MemoryFilter("ann"), limit=2, cursor=cursor)


async def test_the_same_statement_is_found_whatever_its_case_space_and_marks(store: MemoryStore) -> None:
    await put(
        store,
        memory("older", content="I like tea.", at=1.0),
        memory("newer", content="i LIKE  tea!", at=2.0),
        memory("gone", content="I like tea", at=3.0, status=MemoryStatus.SUPERSEDED),
        memory("bob's", content="I like tea", user_id="bob", at=4.0),
    )
    key = statement_key("I like tea")
    found = await store.same_statement(MemoryFilter("ann"), key)
    assert found is not None
    assert found.memory.id == "newer"
    assert found.vector.shape == (DIMENSION,)
    assert await store.same_statement(MemoryFilter("ann"), statement_key("I like coffee")) is None
    assert await store.same_statement(MemoryFilter("ann", project_id="p", exact_project=True), key) is None
    assert await store.same_statement(MemoryFilter("ann"), 'x" or user_id != "') is None


async def test_delete_forgets_for_good_and_only_what_belongs_to_the_user(store: MemoryStore) -> None:
    await put(store, memory("a"), memory("b"), memory("bob's", user_id="bob"))
    await store.delete("ann", ["a", "bob's", "no such", "tab\t", '"] or id != "'])
    await store.delete("ann", [])
    assert [r.memory.id for r in await store.get("ann", ["a", "b"])] == ["b"]
    assert await store.count(MemoryFilter("ann", status=None)) == 1
    await store.apply("ann", [], np.zeros((0, DIMENSION), dtype=np.float32))  # nothing to apply is fine
    assert [c.memory.id for c in await store.search(MemoryFilter("ann"), direction(1.0), limit=9)] == ["b"]
    assert [r.memory.id for r in await store.get("bob", ["bob's"])] == ["bob's"]
    await put(store, memory("a", content="first"), memory("a", content="again"))  # the later of two changes stands
    assert [r.memory.content for r in await store.get("ann", ["a"])] == ["again"]
    assert len(await store.search(MemoryFilter("ann"), direction(1.0), limit=9)) == 2
    assert await store.is_ready()


async def test_nobody_reads_or_overwrites_the_memory_of_another_user(store: MemoryStore) -> None:
    await put(store, memory("m", content="Ann's"))
    with pytest.raises(MemoryRefused, match="already taken") as refused:
        await put(store, memory("other", user_id="bob"), memory("m", user_id="bob", content="Bob's"))
    assert (refused.value.memory_id, refused.value.code) == ("m", "id_taken")
    assert await store.get("bob", ["m"]) == []
    assert await store.count(MemoryFilter("bob", status=None)) == 0
    assert [r.memory.content for r in await store.get("ann", ["m"])] == ["Ann's"]


async def test_a_memory_that_does_not_fit_is_bad_input_and_nothing_is_written(store: MemoryStore) -> None:
    fields = ({"set": {1, 2}}, {"nan": float("nan")}, {"large": "x" * 70_000})
    wrong = [replace(memory("m"), metadata=one) for one in fields]
    for one in (*wrong, replace(memory("m"), subject="x" * 300), replace(memory("m"), created_at=float("inf"))):
        with pytest.raises(MemoryRefused) as refused:
            await put(store, memory("fits"), one)
        assert refused.value.memory_id == "m"
        assert await store.count(MemoryFilter("ann")) == 0


def hostile_ids() -> list[str]:
    """A hundred that a filter expression, a pattern or a careless comparison would trip over; all are valid."""
    breakouts = ['"', "'", "\\", '\\"', "\\\\", '" or user_id != "', "' or user_id != '", '" or 1 == 1 or user_id == "']
    breakouts += ['"] or user_id not in ["', '") or (user_id != "', '\\" or user_id != \\"', "%", "_", "%%", "a%", "*"]
    breakouts += ["{user}", "{0}", "$meta", "user_id", "true", "null", "None", "0", "-1", "1e9", "[]", "{}", "//", "--"]
    breakouts += ["a b", "a  b", *r"\n \x22 \u0022 &quot; %22 ` ${x} # ; and || && !".split(" ")]
    alike = "Ann ANN аnn ann\u0301 ánn ánn ａｎｎ ann. annn an ﬁ fi Å Å ß ss É E\u0301 ǆ ǅ İ i\u0307 ſ s 🐈 猫".split(
        " "
    )
    alike += ["x\u2028x", "x\u2029x", "مرحبا"]
    edges = ["x" * 256, "猫" * 85, "🐈" * 64, '"' * 256, "\\" * 256, "\\" * 255 + '"', "'" * 255]
    wrapped = [f"ann{text}" for text in breakouts] + ['u1" or user_id == "u2', 'u2" or user_id == "u3']
    return [one for one in dict.fromkeys([*breakouts, *alike, *edges, *wrapped]) if one.strip() == one]


async def test_hostile_ids_leak_nothing_and_break_nothing(store: MemoryStore) -> None:
    ids = hostile_ids()
    own = {user_id: f"of {number}" for number, user_id in enumerate(ids)}
    for start in range(0, len(ids), 20):  # a server takes 0.3 s to show a write, however many there are
        rows = [memory(own[i], user_id=i, project_id=i, session_id=i, agent_id=i) for i in ids[start : start + 20]]
        await asyncio.gather(*(put(store, one) for one in rows))
    for user_id in ids:
        everywhere = MemoryFilter(user_id, project_id=user_id, agent_id=user_id, exact_project=True)
        found = await store.search(everywhere, direction(1.0), limit=50)
        (only,) = [candidate.memory for candidate in found]
        assert (only.id, only.user_id, only.session_id) == (own[user_id], user_id, user_id)
        assert [r.memory.id for r in await store.get(user_id, sorted({"of 0", own[user_id]}))] == [own[user_id]]

    async def forgotten(user_id: str, stranger: str) -> None:
        assert [m.user_id for m in (await store.page(MemoryFilter(user_id), limit=9, cursor="")).items] == [user_id]
        of_stranger = MemoryFilter(user_id, project_id=stranger, exact_project=True)
        assert await store.search(of_stranger, direction(1.0), limit=9) == []
        await store.delete(stranger, [own[user_id]])
        assert await store.count(MemoryFilter(user_id)) == 1
        await store.delete(user_id, [own[user_id]])
        assert await store.count(MemoryFilter(user_id)) == 0

    await asyncio.gather(*(forgotten(ids[n], ids[n + 1]) for n in range(20)))


async def test_hostile_memory_ids_name_only_themselves(store: MemoryStore) -> None:
    ids = hostile_ids()
    await put(store, *(memory(memory_id) for memory_id in ids), memory("bystander"))
    assert [r.memory.id for r in await store.get("ann", ids)] == ids
    await asyncio.gather(*(store.delete("ann", [memory_id]) for memory_id in ids[:20]))
    assert [r.memory.id for r in await store.get("ann", ids)] == ids[20:]
    await store.delete("ann", ids)
    assert [r.memory.id for r in await store.load(MemoryFilter("ann"), limit=900)] == ["bystander"]
