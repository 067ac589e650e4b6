"""What the library promises, on a real turn log and ledger."""

from __future__ import annotations

import asyncio
from functools import partial, reduce
from typing import Any

import numpy as np
import pytest
from disturbed_calls import Happening
from library_parts import NOW, Parts
from memory_rows import memory as row

from memory.errors import BadInput, NotFound
from memory.model import Memory, MemoryStatus, Message, Scope
from memory.ports import Backlog, MemoryFilter
from memory.service.erasure import DELETE_BATCH
from memory.service.requests import MemoryEdit, NewMemory

ANN = Scope("ann")
memory = partial(row, at=NOW)


def said(*contents: str) -> list[Message]:
    """User and assistant in turn."""
    return [Message(("user", "assistant")[i % 2], content) for i, content in enumerate(contents)]


async def everything(parts: Parts, user_id: str = "ann") -> list[Memory]:
    return [record.memory for record in await parts.store.load(MemoryFilter(user_id, status=None), limit=10_000)]


async def test_what_is_added_is_stored_as_given_one_id_per_item_in_its_project_and_found_at_once(parts: Parts) -> None:
    items = [NewMemory("  I like Tea. "), NewMemory("  I like Tea. "), NewMemory("The car is blue", project_id="blue")]
    ids = await parts.library.add(Scope("ann", "red"), items)
    assert len(set(ids)) == 3
    assert [(await parts.library.get("ann", i)).content for i in ids] == [item.content for item in items]
    assert [(await parts.library.get("ann", i)).project_id for i in ids] == ["red", "red", "blue"]
    assert (await parts.library.search(Scope("ann", "blue"), query="which car is blue"))[0].memory.id == ids[2]


NESTED = reduce(lambda inner, _: {"deeper": inner}, range(5_000), dict[str, Any]())


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"content": " \n "}, "content"),
        ({"content": "x" * 8_001}, "content"),
        ({"memory_type": "feeling"}, "memory_type"),
        ({"category": "colour"}, "category"),
        ({"importance": 1.5}, "importance"),
        ({"project_id": " edge"}, "project_id"),
        ({"metadata": {"number": 2**63}}, "64 bits"),
        ({"metadata": {"text": "x" * 16_384}}, "bytes"),
        ({"metadata": NESTED}, "deep"),
    ],
)
async def test_one_bad_item_refuses_the_whole_call_and_is_named(parts: Parts, fields: Any, complaint: str) -> None:
    with pytest.raises(BadInput, match=rf"memories\[1\].*{complaint}"):
        await parts.library.add(ANN, [NewMemory("fine"), NewMemory(**{"content": "x", **fields})])
    for count in (0, 201):
        with pytest.raises(BadInput, match="1 to 200"):
            await parts.library.add(ANN, [NewMemory("x")] * count)
    assert await everything(parts) == []


@pytest.mark.parametrize("memory_id", ["theirs", "never", "", " ", 'x" or user_id != "', "x" * 300, "a\x00b"])
async def test_a_memory_of_somebody_else_is_as_absent_as_one_that_never_was(parts: Parts, memory_id: str) -> None:
    await parts.put(Memory(id="theirs", user_id="bob", content="x", created_at=1, updated_at=1, said_at=1))
    for call in (
        parts.library.get("ann", memory_id),
        parts.library.history("ann", memory_id),
        parts.library.patch("ann", memory_id, MemoryEdit(content="mine now")),
        parts.library.delete("ann", memory_id),
    ):
        with pytest.raises(NotFound, match="no such memory"):
            await call
    assert (await parts.library.get("bob", "theirs")).content == "x"


async def test_changed_content_is_found_by_its_new_words_under_the_same_id(parts: Parts) -> None:
    (kept,) = await parts.library.add(ANN, [NewMemory("green tea", created_at=5.0)])
    await parts.library.add(ANN, [NewMemory("a bicycle with two bells")])
    edited = await parts.library.patch("ann", kept, MemoryEdit(content="black coffee"))
    assert (edited.id, edited.content, edited.said_at, edited.updated_at) == (kept, "black coffee", 5.0, NOW)
    best = (await parts.library.search(ANN, query="black coffee"))[0]
    assert (best.memory.id, best.score) == (kept, pytest.approx(1.0))


async def test_an_edit_of_anything_else_embeds_nothing_and_keeps_the_vector(parts: Parts) -> None:
    (one,) = await parts.library.add(ANN, [NewMemory("green tea", metadata={"a": 1})])
    before = (await parts.store.get("ann", [one]))[0].vector
    parts.embedder.texts.clear()
    edit = MemoryEdit(importance=0.0, category="habit", memory_type="episodic", metadata={"b": 2})
    edited = await parts.library.patch("ann", one, edit)
    assert (edited.importance, edited.category, edited.memory_type) == (0.0, "habit", "episodic")
    assert edited.metadata == {"b": 2}
    after = (await parts.store.get("ann", [one]))[0]
    assert after.memory == edited
    assert np.array_equal(before, after.vector)
    assert parts.embedder.texts == []


@pytest.mark.parametrize(
    "fields", [{}, {"content": " "}, {"importance": 2.0}, {"category": "x"}, {"metadata": {"n": 2**64}}]
)
async def test_an_edit_that_cannot_be_is_refused_before_anything_is_embedded(parts: Parts, fields: Any) -> None:
    (one,) = await parts.library.add(ANN, [NewMemory("green tea")])
    parts.embedder.texts.clear()
    with pytest.raises(BadInput):
        await parts.library.patch("ann", one, MemoryEdit(**fields))
    assert parts.embedder.texts == []


async def test_every_write_moves_the_revision_and_names_what_changed(parts: Parts) -> None:
    one, two = await parts.library.add(ANN, [NewMemory("a"), NewMemory("b")])
    assert await parts.ledger.changed_since("ann", 0) == {one, two}
    for change, changed in (
        (partial(parts.library.patch, "ann", one, MemoryEdit(importance=1.0)), one),
        (partial(parts.library.delete, "ann", two), two),
    ):
        before = await parts.ledger.revision("ann")
        await change()
        assert before.is_settled
        assert await parts.ledger.changed_since("ann", before.number) == {changed}
    assert (await parts.ledger.revision("ann")).is_settled


async def test_history_is_the_memory_and_all_that_it_replaced(parts: Parts) -> None:
    old: dict[str, Any] = {"status": MemoryStatus.SUPERSEDED}
    await parts.put(
        memory("berlin", said_at=30),
        memory("munich", said_at=20, superseded_by="berlin", **old),
        memory("hamburg", said_at=10, superseded_by="munich", **old),
        memory("unrelated", superseded_by="other", **old),
    )
    assert [m.id for m in await parts.library.history("ann", "berlin")] == ["berlin", "munich", "hamburg"]
    assert [m.id for m in await parts.library.history("ann", "hamburg")] == ["hamburg"]
    await parts.put(memory("a", superseded_by="b", **old), memory("b", superseded_by="a", **old))
    assert {m.id for m in await parts.library.history("ann", "a")} == {"a", "b"}, "it ends"


async def test_a_page_as_of_a_time_shows_what_stood_then(parts: Parts) -> None:
    await parts.put(
        memory("munich", said_at=10, status=MemoryStatus.SUPERSEDED, invalid_at=20.0, superseded_by="berlin"),
        memory("berlin", said_at=20),
        memory("cat", said_at=30),
    )

    async def ids(status: MemoryStatus | None, as_of: float | None) -> set[str]:
        return {m.id for m in (await parts.library.page(ANN, status=status, as_of=as_of)).items}

    active, superseded = MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED
    assert await ids(active, 15.0) == {"munich"}
    assert await ids(active, 25.0) == {"berlin"}
    assert await ids(superseded, 25.0) == {"munich"}
    assert await ids(None, 25.0) == {"munich", "berlin"}
    assert await ids(active, None) == {"berlin", "cat"}


async def test_a_page_as_of_a_time_is_filled_from_many_pages_of_the_store(parts: Parts) -> None:
    await parts.put(*(memory(f"m{i:02}", created_at=i, said_at=i % 10) for i in range(40)))
    first = await parts.library.page(ANN, as_of=0.0, limit=3)
    rest = await parts.library.page(ANN, as_of=0.0, limit=3, cursor=first.next_cursor)
    assert [m.id for m in first.items + rest.items] == ["m30", "m20", "m10", "m00"]
    assert rest.next_cursor == ""


async def test_stats_count_one_users_memories_and_turns(parts: Parts) -> None:
    await parts.put(memory("a"), memory("b", memory_type="episodic"), memory("c", status=MemoryStatus.SUPERSEDED))
    await parts.library.append_turn(Scope("ann", session_id="s"), said("hello", "hi"))
    parts.now += 1
    stats = await parts.library.stats("ann")
    assert (stats.active, stats.superseded, stats.pending_turns, stats.failed_turns) == (2, 1, 1, 0)
    assert stats.by_type == {"semantic": 1, "episodic": 1, "procedural": 0, "reflective": 0}
    assert (await parts.library.stats("bob")).active == 0


async def test_deleting_a_user_takes_every_batch_and_one_who_cannot_be_nothing(parts: Parts) -> None:
    for _ in range(3):
        await parts.library.add(ANN, [NewMemory("x")] * (DELETE_BATCH * 2 // 3))
    for user_id in ("", " ann", "a\nb"):
        with pytest.raises(BadInput):
            await parts.library.erase(user_id)
    assert (await parts.library.erase("ann")).request.deleted["memories"] == 3 * (DELETE_BATCH * 2 // 3)
    assert await everything(parts) == []


async def test_a_history_becomes_one_turn_per_exchange_in_order_without_secrets(parts: Parts) -> None:
    scope = Scope("ann", "red", "s")
    messages = [Message("system", "be nice"), *said("one, hunter2", "first", "two", "second hunter2", "three")]
    last = await parts.library.append_turn(scope, messages, at=100.0, trace_id="t")
    turns = [turn async for turn in parts.library.turns("ann", "s")]
    assert [(t.at, t.messages[0].content, t.answer) for t in turns] == [
        (100.0, "one, [secret]", "first"),
        (100.001, "two", "second [secret]"),
        (100.002, "three", ""),
    ]
    assert turns[-1].id == last
    assert {(t.scope, t.trace_id, t.status.value) for t in turns} == {(scope, "t", "closed")}


def at_each_poll(parts: Parts, monkeypatch: pytest.MonkeyPatch, happening: Happening | None = None) -> list[Backlog]:
    """What flush learnt at each of its polls. `happening`: after each."""
    backlog, polls = parts.turn_log.backlog, list[Backlog]()

    async def counted(*arguments: Any, **options: Any) -> Backlog:
        polls.append(await backlog(*arguments, **options))
        if happening is not None:
            await happening()
        return polls[-1]

    monkeypatch.setattr(parts.turn_log, "backlog", counted)
    return polls


async def test_flush_returns_when_all_that_was_said_is_learnt(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    await parts.library.append_turn(Scope("ann", session_id="s"), said("my cat is Tom", "nice"), at=5.0)
    parts.now += 1

    async def work() -> None:
        if lease := await parts.lease():
            await parts.learn(lease)

    polls = at_each_poll(parts, monkeypatch, work)
    left = await parts.library.flush("ann")
    assert (left.pending, left.failed, len(polls)) == (0, 0, 2)
    assert [m.content for m in await everything(parts)] == ["my cat is Tom"]


async def test_flush_waits_for_what_waits_for_the_log_itself(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    make_due_now, takes_writes = parts.turn_log.make_due_now, asyncio.Event()

    async def arrives() -> None:  # from a filter, whose write waits for the same log
        await takes_writes.wait()
        await parts.library.append_turn(Scope("ann", session_id="s"), said("my cat is Tom", "nice"))
        parts.now += 1

    async def blocked(user_id: str, *, session_id: str = "") -> None:
        if takes_writes.is_set():
            await arriving  # it takes less than the pause for replies
        else:
            await asyncio.sleep(0.02)  # longer than that pause
            takes_writes.set()
        await make_due_now(user_id, session_id=session_id)

    monkeypatch.setattr(parts.turn_log, "make_due_now", blocked)
    polls = at_each_poll(parts, monkeypatch)
    async with asyncio.TaskGroup() as group:
        arriving = group.create_task(arrives())
        await parts.library.flush("ann")
    assert polls[0].pending == 1


async def test_flush_gives_up_in_the_end_and_soon_on_retries(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    polls = at_each_poll(parts, monkeypatch)
    await parts.library.append_turn(Scope("ann", session_id="s"), said("my cat is Tom", "nice"))
    parts.now += 1
    assert (await parts.library.flush("ann")).pending == 1
    patience = len(polls)
    lease = await parts.lease()
    await parts.turn_log.retry_at(lease, due_at=parts.now + 60, reason="the model is down")
    left = await parts.library.flush("ann")
    assert (left.pending, left.waiting) == (1, 1)
    assert 1 < len(polls) - patience < patience


async def test_flush_of_one_session_waits_for_no_other_nor_user(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    await parts.library.append_turn(Scope("ann", session_id="s"), said("a", "b"))
    await parts.library.append_turn(Scope("bob", session_id="t"), said("a", "b"))
    parts.now += 1
    polls = at_each_poll(parts, monkeypatch)
    assert (await parts.library.flush("ann", "t")).pending == 0
    assert len(polls) == 1
