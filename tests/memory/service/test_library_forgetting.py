"""What is forgotten, or put in other words, is not repeated by notes of earlier requests; and receipts show no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest
import pytest_asyncio
from library_parts import NOW, Parts, library_parts

from memory.errors import NotFound, Unavailable
from memory.model import (
    CandidateVerdict,
    CarriedNote,
    ChainLink,
    Message,
    PastNote,
    RecallStatus,
    Receipt,
    ReceiptCandidate,
    Scope,
)
from memory.service.erasure import SourceForgotten
from memory.service.requests import MemoryEdit, NewMemory

ANN = Scope("ann")


@pytest_asyncio.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as built:
        yield built


async def noted(parts: Parts, *contents: str, project_id: str = "") -> list[str]:
    """Memories, each in a note of its own under its id."""
    ids = await parts.library.add(Scope("ann", project_id), [NewMemory(content) for content in contents])
    for memory_id, content in zip(ids, contents, strict=True):
        await parts.notes.keep("ann", memory_id, PastNote(content, (memory_id,), 5), made_at=parts.now - 1)
    return ids


async def left(parts: Parts, ids: Collection[str]) -> set[str]:
    return set(await parts.notes.find("ann", list(ids)))


async def test_deleting_a_memory_drops_the_notes_that_hold_it(parts: Parts) -> None:
    one, two = await noted(parts, "I like tea", "My car is blue")
    await parts.library.delete("ann", one)
    assert await left(parts, [one, two]) == {two}


async def test_deleting_a_project_drops_its_notes_and_a_user_all_of_them(parts: Parts) -> None:
    red = await noted(parts, *(f"red {n}" for n in range(3)), project_id="red")
    plain = await noted(parts, *(f"plain {n}" for n in range(3)))
    await parts.library.delete_scope("ann", "red")
    assert await left(parts, red + plain) == set(plain)
    await parts.library.delete_scope("ann")
    assert await left(parts, red + plain) == set()


async def test_changing_the_words_drops_the_notes_with_the_old_ones_and_changing_anything_else_does_not(
    parts: Parts,
) -> None:
    one, two = await noted(parts, "I like tea", "My car is blue")
    await parts.library.patch("ann", one, MemoryEdit(content="I like coffee"))
    await parts.library.patch("ann", two, MemoryEdit(importance=0.9))
    assert await left(parts, [one, two]) == {two}


async def test_a_request_under_way_cannot_bring_a_forgotten_memory_back(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds the memory right before the store deletes it, and keeps its note at once, or when all is over."""
    (one,) = await noted(parts, "I like tea")
    delete = parts.store.delete
    began: list[float] = []

    async def delete_late(user_id: str, memory_ids: Collection[str]) -> None:
        parts.now += 0.01
        began.append(parts.now)
        await parts.notes.keep("ann", "at once", PastNote("I like tea", (one,), 5), made_at=parts.now)
        await delete(user_id, memory_ids)
        parts.now += 0.01

    monkeypatch.setattr(parts.store, "delete", delete_late)
    await parts.library.delete("ann", one)
    await parts.notes.keep("ann", "when all is over", PastNote("I like tea", (one,), 5), made_at=began[0])
    assert await left(parts, [one, "at once", "when all is over"]) == set()


async def test_where_the_note_book_is_down_nothing_is_deleted_by_half(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = await noted(parts, "I like tea")

    async def is_down(*_: object, **__: object) -> None:
        raise Unavailable("turn_log", "the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(parts.notes, "drop", is_down)
        with pytest.raises(Unavailable):
            await parts.library.delete("ann", one)
    await parts.library.delete("ann", one)  # it can be asked for again
    assert await left(parts, [one]) == set()


# Receipts


async def kept(parts: Parts, *memory_ids: str, receipt_id: str = "r1") -> None:
    parts.receipts.keep(
        Receipt(
            receipt_id,
            "ann",
            NOW,
            RecallStatus.USED,
            "found",
            query="what do I like",
            candidates=tuple(ReceiptCandidate(one, 1.0, {}, CandidateVerdict.INJECTED) for one in memory_ids),
            notes=(CarriedNote(0, memory_ids, 9, is_new=True),),
        )
    )
    while await parts.receipts.get("ann", receipt_id) is None:
        await asyncio.sleep(0.001)


async def test_a_receipt_shows_what_its_memories_say_now_and_nothing_of_forgotten_ones(parts: Parts) -> None:
    one, two, three = await noted(parts, "I like tea", "I like cake", "I like rain")
    await kept(parts, one, two, three)
    await parts.library.delete("ann", one)
    await parts.library.patch("ann", two, MemoryEdit(content="I like bread"))
    explained = await parts.library.receipt("ann", "r1")
    assert explained.contents == {two: "I like bread", three: "I like rain"}
    assert explained.receipt.memory_ids() == (one, two, three)
    assert "tea" not in repr(explained)


@pytest.mark.parametrize("receipt_id", ["r1", "never", "", "x" * 300, "a\x00b"])
async def test_somebody_else_s_receipt_is_not_found(parts: Parts, receipt_id: str) -> None:
    await kept(parts)
    with pytest.raises(NotFound, match="no such receipt"):
        await parts.library.receipt("bob", receipt_id)


async def test_a_receipt_can_be_read_while_the_store_is_down(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = await noted(parts, "I like tea")
    await kept(parts, one)

    async def is_down(*_: object) -> None:
        raise Unavailable("milvus", "switched off by the test")

    monkeypatch.setattr(parts.store, "get", is_down)
    explained = await parts.library.receipt("ann", "r1")
    assert (explained.contents, explained.receipt.query) == ({}, "what do I like")


async def test_forgetting_everything_forgets_what_was_asked(parts: Parts) -> None:
    parts.receipts.keep(Receipt("r-all", "ann", parts.now, RecallStatus.EMPTY, "nothing_relevant", query="my cat?"))
    await parts.library.add(Scope("ann", "red"), [NewMemory("red one")])
    await parts.library.delete_scope("ann", "red")
    assert await parts.receipts.get("ann", "r-all") is not None
    await parts.library.delete_scope("ann")
    assert await parts.receipts.get("ann", "r-all") is None


async def test_forgetting_everything_forgets_which_exchanges_belong_together(parts: Parts) -> None:
    link = ChainLink("s1", "t1", ("k1",))
    for user_id in ("ann", "bob"):
        await parts.turn_log.chains.keep(user_id, ("resp_1", "conv_1"), link, at=parts.now)
    await parts.library.delete_scope("ann", "red")
    assert await parts.turn_log.chains.find("ann", "resp_1") == link
    await parts.library.delete_scope("ann")
    assert await parts.turn_log.chains.find("ann", "resp_1") is None
    assert await parts.turn_log.chains.find("ann", "conv_1") is None
    assert await parts.turn_log.chains.find("bob", "resp_1") == link


async def test_a_turn_that_is_forgotten_before_it_is_learnt_never_is(parts: Parts) -> None:
    turn_id = await parts.library.append_turn(Scope("ann", session_id="s"), [Message("user", "My cat is Tom")])
    assert await parts.library.forget_source("ann", turn_id) == SourceForgotten((), ())
    assert await parts.lease() is None
    with pytest.raises(NotFound):
        await parts.library.forget_source("ann", turn_id)
