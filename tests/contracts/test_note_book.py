"""The note book: notes as they were, none that holds what was forgotten, and never too many. On every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from note_books import BOOKS, Books, Bounds, Opener
from turn_logs import START, ManualClock

from memory.model import PastNote
from memory.ports import NoteBook

NOTE = PastNote('<memory>\n- 2025-01-02: I\'m "Ann" 你好 \\ é\n</memory>', ("m1", "it's 你"), 21)


def note(*memory_ids: str, text: str = "") -> PastNote:
    return PastNote(text or f"about {', '.join(memory_ids)}", memory_ids, 7)


@pytest.fixture(params=sorted(BOOKS))
def open_books(request: pytest.FixtureRequest) -> Opener:
    return BOOKS[request.param]


@pytest.fixture
async def books(open_books: Opener, tmp_path: Path) -> AsyncIterator[Books]:
    async with open_books(tmp_path, ManualClock(), Bounds()) as opened:
        yield opened


@pytest.fixture
def book(books: Books) -> NoteBook:
    return books.notes


async def test_a_note_comes_back_as_it_was_kept_and_only_for_its_key(book: NoteBook) -> None:
    await book.keep("ann", "k1", NOTE, made_at=START)
    assert await book.find("ann", ["k0", "k1", "k2"]) == {"k1": NOTE}
    assert await book.find("ann", []) == {}


async def test_it_is_known_when_the_search_for_a_note_began(book: NoteBook) -> None:
    for key, at in (("k1", START), ("k2", START + 1.5), ("k1", START + 2.25)):
        await book.keep("ann", key, NOTE, made_at=at)
    found = await book.find("ann", ["k1", "k2"])
    assert {key: one.made_at for key, one in found.items()} == {"k1": START + 2.25, "k2": START + 1.5}


async def test_many_notes_are_found_in_one_look(book: NoteBook) -> None:
    kept = {f"k{n}": note(f"m{n}") for n in range(300)}
    for key, one in kept.items():
        await book.keep("ann", key, one, made_at=START)
    assert await book.find("ann", list(kept)) == kept


async def test_another_user_s_note_is_never_found_even_by_its_key(book: NoteBook) -> None:
    await book.keep("ann", "k1", NOTE, made_at=START)
    assert await book.find("bob", ["k1"]) == {}
    await book.keep("bob", "k1", note("b"), made_at=START)
    assert await book.find("ann", ["k1"]) == {"k1": NOTE}


async def test_the_latest_note_of_a_key_stands(book: NoteBook) -> None:
    await book.keep("ann", "k1", note("old"), made_at=START)
    await book.keep("ann", "k1", note("new"), made_at=START + 1)
    assert await book.find("ann", ["k1"]) == {"k1": note("new")}


async def test_what_one_process_kept_or_dropped_another_one_sees_at_once(open_books: Opener, tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_books(tmp_path, clock, Bounds()) as one, open_books(tmp_path, clock, Bounds()) as two:
        await one.notes.keep("ann", "k1", note("a"), made_at=START)
        assert await two.notes.find("ann", ["k1"]) == {"k1": note("a")}
        await two.notes.drop("ann", ["a"], now=START + 1)
        assert await one.notes.find("ann", ["k1"]) == {}


async def test_notes_outlive_their_process(open_books: Opener, tmp_path: Path) -> None:
    async with open_books(tmp_path, ManualClock(), Bounds()) as before:
        await before.notes.keep("ann", "k1", NOTE, made_at=START)
    async with open_books(tmp_path, ManualClock(), Bounds()) as after:
        assert await after.notes.find("ann", ["k1"]) == {"k1": NOTE}


# Forgetting


async def test_every_note_that_holds_a_dropped_memory_is_gone_and_no_other(book: NoteBook) -> None:
    for key, one in {"k1": note("a", "b"), "k2": note("b"), "k3": note("it's 你"), "k4": note("aa")}.items():
        await book.keep("ann", key, one, made_at=START)
    await book.keep("bob", "k1", note("a"), made_at=START)
    await book.drop("ann", ["a", "it's 你", "never was"], now=START + 1)
    assert set(await book.find("ann", ["k1", "k2", "k3", "k4"])) == {"k2", "k4"}
    assert set(await book.find("bob", ["k1"])) == {"k1"}


async def test_an_empty_collection_drops_all_of_the_user(book: NoteBook) -> None:
    await book.keep("ann", "k1", note("a"), made_at=START)
    await book.keep("bob", "k1", note("a"), made_at=START)
    await book.drop("ann", [], now=START + 1)
    assert await book.find("ann", ["k1"]) == {}
    assert set(await book.find("bob", ["k1"])) == {"k1"}


@pytest.mark.parametrize("dropped", [["a"], []])
async def test_a_note_that_was_under_way_during_the_drop_is_not_kept(book: NoteBook, dropped: list[str]) -> None:
    await book.drop("ann", dropped, now=START + 1)
    await book.keep("ann", "k1", note("a", "b"), made_at=START + 0.9)
    assert await book.find("ann", ["k1"]) == {}
    await book.keep("bob", "k1", note("a"), made_at=START + 0.9)
    assert set(await book.find("bob", ["k1"])) == {"k1"}


async def test_a_note_without_what_was_dropped_or_made_later_is_kept(book: NoteBook) -> None:
    await book.drop("ann", ["a"], now=START + 1)
    await book.keep("ann", "k1", note("b"), made_at=START + 0.9)
    await book.keep("ann", "k2", note("a"), made_at=START + 1.1)  # the memory was changed, not forgotten
    assert set(await book.find("ann", ["k1", "k2"])) == {"k1", "k2"}


async def test_later_drops_do_not_lift_an_earlier_one_within_its_minute(book: NoteBook) -> None:
    await book.drop("ann", ["a"], now=START)
    for n in range(50):
        await book.drop("ann", [f"x{n}"], now=START + 1 + n)
    await book.keep("ann", "k1", note("a"), made_at=START - 1)
    assert await book.find("ann", ["k1"]) == {}


# Bounds


async def test_a_user_s_oldest_notes_go_when_his_bytes_are_spent(open_books: Opener, tmp_path: Path) -> None:
    async with open_books(tmp_path, ManualClock(), Bounds(user_bytes=10_000)) as books:
        await books.notes.keep("bob", "k", note("b"), made_at=START)
        for n in range(50):
            await books.notes.keep("ann", f"k{n}", note(f"m{n}", text="x" * 1_000), made_at=START + n)
        left = await books.notes.find("ann", [f"k{n}" for n in range(50)])
        assert sorted(left) == [f"k{n}" for n in range(50 - len(left), 50)]
        assert 9 <= len(left) <= 10  # a little more than 1,000 bytes each; one may lie across the bound
        assert set(await books.notes.find("bob", ["k"])) == {"k"}


async def test_all_notes_together_have_a_bound_too(open_books: Opener, tmp_path: Path) -> None:
    async with open_books(tmp_path, ManualClock(), Bounds(total_bytes=10_000)) as books:
        for n in range(50):
            await books.notes.keep(f"user{n}", "k", note("m", text="x" * 1_000), made_at=START + n)
        left = [n for n in range(50) if await books.notes.find(f"user{n}", ["k"])]
        assert left == list(range(50 - len(left), 50))
        assert 9 <= len(left) <= 10


async def test_a_replaced_note_counts_as_new(open_books: Opener, tmp_path: Path) -> None:
    async with open_books(tmp_path, ManualClock(), Bounds(user_bytes=3_000)) as books:
        for n in range(3):
            await books.notes.keep("ann", f"k{n}", note("m", text="x" * 1_000), made_at=START + n)
        await books.notes.keep("ann", "k0", note("m", text="y" * 1_000), made_at=START + 4)
        await books.notes.keep("ann", "k3", note("m", text="x" * 1_000), made_at=START + 5)
        assert set(await books.notes.find("ann", ["k0", "k1", "k2", "k3"])) == {"k0", "k2", "k3"}


async def test_a_note_of_monstrous_size_is_not_kept(book: NoteBook) -> None:
    await book.keep("ann", "k1", note("m", text="x" * 100_000), made_at=START)
    assert await book.find("ann", ["k1"]) == {}
