"""What is forgotten, put in other words or archived is not repeated by notes, receipts and raw words."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from disturbed_calls import down
from library_parts import NOW, Parts
from memory_rows import memory as row
from note_lookup import notes_of

from memory.errors import BadInput, NotFound, Unavailable
from memory.learn.retention import RetentionReason, put_away
from memory.model import ChainLink, MemoryStatus, Message, Scope, Trust
from memory.model.recalled import CandidateVerdict, CarriedNote, PastNote, RecallStatus, Receipt, ReceiptCandidate
from memory.service.erasure import SourceForgotten
from memory.service.raw_word_search import Statements
from memory.service.requests import MemoryEdit, NewMemory


async def noted(parts: Parts, *contents: str, project_id: str = "") -> list[str]:
    """Memories, each in a note of its own under its id."""
    ids = await parts.library.add(Scope("ann", project_id), [NewMemory(content) for content in contents])
    for memory_id, content in zip(ids, contents, strict=True):
        await parts.notes.keep("ann", memory_id, PastNote(content, (memory_id,), 5), made_at=parts.now - 1)
    return ids


async def left(parts: Parts, ids: Collection[str]) -> set[str]:
    return set(await notes_of(parts.notes, "ann", list(ids)))


async def test_changing_the_words_drops_the_notes_with_the_old_ones_and_no_other_change_does(parts: Parts) -> None:
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


async def test_while_notes_are_down_nothing_is_deleted_by_half(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = await noted(parts, "I like tea")
    with monkeypatch.context() as broken:
        broken.setattr(parts.notes, "drop", down)
        with pytest.raises(Unavailable):
            await parts.library.delete("ann", one)
    await parts.library.delete("ann", one)  # it can be asked for again
    assert await left(parts, [one]) == set()


async def kept(parts: Parts, *memory_ids: str) -> None:
    """A receipt r1 of a request whose note held them."""
    injected = tuple(ReceiptCandidate(one, 1.0, {}, CandidateVerdict.INJECTED) for one in memory_ids)
    notes, query = (CarriedNote(0, memory_ids, 9, is_new=True),), "what do I like"
    found = Receipt("r1", "ann", NOW, RecallStatus.USED, "found", query=query, candidates=injected, notes=notes)
    parts.receipts.keep(found)
    while await parts.receipts.get("ann", "r1") is None:
        await asyncio.sleep(0.001)


async def test_a_receipt_says_what_memories_say_now_if_anything(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = await noted(parts, "I like tea", "I like cake", "I like rain")
    await kept(parts, one, two, three)
    await parts.library.delete("ann", one)
    await parts.library.patch("ann", two, MemoryEdit(content="I like bread"))
    explained = await parts.library.receipt("ann", "r1")
    assert explained.contents == {two: "I like bread", three: "I like rain"}
    assert explained.receipt.memory_ids() == (one, two, three)
    assert "tea" not in repr(explained)
    monkeypatch.setattr(parts.store, "get", down)
    explained = await parts.library.receipt("ann", "r1")
    assert (explained.contents, explained.receipt.query) == ({}, "what do I like")


async def test_erasing_a_project_takes_its_notes_and_a_user_what_was_asked_and_belongs_together(parts: Parts) -> None:
    red = await noted(parts, *(f"red {n}" for n in range(3)), project_id="red")
    plain = await noted(parts, *(f"plain {n}" for n in range(3)))
    parts.receipts.keep(Receipt("r-all", "ann", parts.now, RecallStatus.EMPTY, "nothing_relevant", query="my cat?"))
    link, chains = ChainLink("s1", "t1", ("k1",)), parts.turn_log.chains
    for user_id in ("ann", "bob"):
        await chains.keep(user_id, ("resp_1", "conv_1"), link, at=parts.now)
    await parts.library.erase("ann", "red")
    assert await left(parts, red + plain) == set(plain)
    assert await parts.receipts.get("ann", "r-all") is not None
    assert await chains.find("ann", "resp_1") == link
    await parts.library.erase("ann")
    assert await left(parts, red + plain) == set()
    assert await parts.receipts.get("ann", "r-all") is None
    assert [await chains.find("ann", key) for key in ("resp_1", "conv_1")] == [None, None]
    assert await chains.find("bob", "resp_1") == link


async def test_a_turn_that_is_forgotten_before_it_is_learnt_never_is(parts: Parts) -> None:
    turn_id = await parts.library.append_turn(Scope("ann", session_id="s"), [Message("user", "My cat is Tom")])
    assert await parts.library.forget_source("ann", turn_id) == SourceForgotten((), ())
    assert await parts.lease() is None
    with pytest.raises(NotFound):
        await parts.library.forget_source("ann", turn_id)


memory = partial(row, at=NOW)


def away(memory_id: str, why: RetentionReason = RetentionReason.QUOTA, **details: str) -> Any:
    return put_away(memory(memory_id), why, now=NOW, **details).after


async def ids(parts: Parts, status: MemoryStatus | None) -> set[str]:
    return {one.id for one in (await parts.library.page(Scope("ann"), status=status)).items}


async def test_what_is_put_away_is_listed_counted_and_brought_back(parts: Parts) -> None:
    await parts.put(memory("here"), away("gone"))
    assert await ids(parts, MemoryStatus.ACTIVE) == {"here"}
    assert await ids(parts, MemoryStatus.ARCHIVED) == {"gone"}
    assert await ids(parts, None) == {"here", "gone"}
    then = await parts.library.page(Scope("ann"), as_of=NOW + 1)
    assert [one.id for one in then.items] == ["here"], "a look back never shows it as active"
    stats = await parts.library.stats("ann")
    assert (stats.active, stats.superseded, stats.archived) == (1, 0, 1)
    before = (await parts.ledger.revision("ann")).number
    back = await parts.library.patch("ann", "gone", MemoryEdit(status="active"))
    assert back == replace(memory("gone"), metadata={"restored": {"at": NOW}})
    assert await ids(parts, MemoryStatus.ACTIVE) == {"here", "gone"}
    assert await parts.ledger.changed_since("ann", before) == {"gone"}


@pytest.mark.parametrize(
    ("memory_id", "status", "complaint"),
    [
        *(("here", wanted, "only be set to active") for wanted in ("archived", "superseded", "x")),
        ("old", "active", "only archived memories"),
    ],
)
async def test_only_archived_memories_become_active(parts: Parts, memory_id: str, status: str, complaint: str) -> None:
    await parts.put(memory("here"), memory("old", status=MemoryStatus.SUPERSEDED, superseded_by="here"))
    before = await parts.library.get("ann", memory_id)
    with pytest.raises(BadInput, match=complaint):
        await parts.library.patch("ann", memory_id, MemoryEdit(status=status))
    assert await parts.library.get("ann", memory_id) == before


async def test_an_edit_of_the_metadata_leaves_our_own_marks(parts: Parts) -> None:
    await parts.put(away("gone"), memory("here", metadata={"archived": "mine", "color": "red"}))
    gone = await parts.library.patch("ann", "gone", MemoryEdit(metadata={"color": "blue"}))
    assert gone.metadata == {"color": "blue", "archived": {"why": "quota", "at": NOW}}
    here = await parts.library.patch("ann", "here", MemoryEdit(metadata={"color": "blue"}))
    assert here.metadata == {"color": "blue"}


async def test_forgetting_takes_duplicates_reflections_notes_and_uses_along(parts: Parts) -> None:
    reflection = memory("r", memory_type="reflective", trust=Trust.TOOL, metadata={"reflects": ["d", "other"]})
    duplicate = away("d", RetentionReason.DUPLICATE, of="m")
    await parts.put(memory("m"), duplicate, reflection, away("apart"), memory("other"))
    await parts.notes.keep("ann", "k", PastNote("what they share", ("r",), 5), made_at=NOW - 1)
    await parts.notes.keep("ann", "of another", PastNote("another", ("other",), 5), made_at=NOW - 1)
    parts.usage_counts.count("ann", ["m", "d", "other"], at=NOW)
    await parts.library.delete("ann", "m")
    assert await ids(parts, None) == {"apart", "other"}
    assert await left(parts, ["k", "of another"]) == {"of another"}
    await parts.usage_counts.take("bob", [])  # a write after what was counted
    assert set(await parts.usage_counts.unstored("ann", limit=10)) == {"other"}
    for gone in ("m", "d", "r"):
        with pytest.raises(NotFound):
            await parts.library.get("ann", gone)


ULM = "I live in Ulm."
SAME = (ULM, "well, i LIVE\n in\tulm, you know", "“I live in Ulm”", "It is true: I live in Ulm!", "I  live in ULM")
OTHERS = ("I live in Ulmen.", "I live in New Ulm.", "I lived in Ulm", "Ulm", "")


@pytest.mark.parametrize(
    ("statement", "text", "is_in"),
    [
        *((ULM, text, True) for text in SAME),
        *((ULM, text, False) for text in OTHERS),
        *((word, f"{word} and {word}", False) for word in ("", " ", "ok!", "...")),
        ("a b", "so A  B it is", True),
        ("私は東京に住んでいます", "そうです、私は東京に住んでいます", True),
    ],
)
def test_statements_are_found_whatever_their_marks_and_words_are_not(statement: str, text: str, *, is_in: bool) -> None:
    assert Statements([statement]).are_in(text) is is_in
    assert bool(Statements([statement])) is (statement == ULM or is_in)


def test_of_many_statements_that_begin_alike_each_is_found() -> None:
    said = Statements(f"My favourite number is {number}." for number in range(300))
    assert [said.are_in(f"I said my favourite number is {number}") for number in range(301)] == [*[True] * 300, False]
