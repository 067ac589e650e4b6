"""The prompt's prefix is sacred: what a model server's cache still finds when notes go along, over thirty turns."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
from prefix_cache import Chat, NoBook, known_memories, measured, search_in, thirty_exchanges

from memory.adapters.sql.notes import SqlNoteBook
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.model import Memory, Placement
from memory.ports import NoteBook

PROMISED_TOKENS = 2_000
EXCHANGES = thirty_exchanges()
MEMORIES = known_memories()


@pytest.fixture
async def book(tmp_path: Path) -> AsyncIterator[NoteBook]:
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        yield SqlNoteBook(database)


def chat_with(
    book: NoteBook, placement: Placement | None = Placement.BEFORE_LAST_USER, *, is_moving: bool = False
) -> Chat:
    return Chat(book, search_in(MEMORIES), placement=placement, is_moving=is_moving)


async def without_memory() -> int:
    return (await measured(chat_with(NoBook(), None), EXCHANGES)).blocks()


async def test_thirty_turns_with_notes_hit_95_percent_of_the_client_s_blocks_and_add_2000_tokens_at_most(
    book: NoteBook,
) -> None:
    figures = await measured(chat_with(book), EXCHANGES)
    assert figures.blocks() >= 0.95 * await without_memory()
    assert figures.notes >= 5
    assert 500 < figures.note_tokens <= PROMISED_TOKENS


async def test_every_prompt_begins_with_all_of_the_one_before_it_and_tells_no_memory_twice(book: NoteBook) -> None:
    chat = chat_with(book)
    before: list[object] = []
    for question, answer in EXCHANGES:
        sent = await chat.ask(question)
        messages, told = sent.messages(), sent.plan.memory_ids()
        assert messages[: len(before)] == before
        assert len(told) == len(set(told))
        before = [*messages, {"role": "assistant", "content": answer}]
        chat.hear(answer)


async def test_a_tool_loop_of_five_calls_reads_one_note_byte_for_byte_and_is_searched_once(book: NoteBook) -> None:
    known = list(MEMORIES)
    chat = Chat(book, search_in(known))
    sent = [await chat.ask("What should I do about the boiler next month?")]
    for n in range(4):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        chat.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        chat.messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": "The boiler and the piano, 7 bar."})
        known.append(Memory(f"boiler-late{n}", "ann", "My boiler was moved.", 1, 1, 1))
        chat.now += 60.0
        sent.append(await chat.send())
    assert [one.was_searched for one in sent] == [True, False, False, False, False]
    notes = [[m for m in one.messages() if m["role"] == "system"][1:] for one in sent]
    assert len(notes[0]) == 1
    assert all(one == notes[0] for one in notes)
    for shorter, longer in pairwise(sent):
        assert longer.body.startswith(shorter.body.removesuffix(b"]}"))


async def test_a_forgotten_memory_appears_in_no_later_request(book: NoteBook) -> None:
    chat = chat_with(book)
    for question, answer in EXCHANGES[:5]:
        sent = await chat.ask(question)
        chat.hear(answer)
    left = [memory for memory in MEMORIES if memory.id != "kitchen-2"]
    forgotten = next(memory for memory in MEMORIES if memory.id == "kitchen-2").content
    assert forgotten in json.dumps(sent.messages())
    chat.search = search_in(left)
    await book.drop("ann", ["kitchen-2"], now=chat.now)
    chat.now += 1
    for question, answer in [("And the kitchen?", "Paint it."), *EXCHANGES[5:]]:
        sent = await chat.ask(question)
        assert forgotten not in json.dumps(sent.messages())
        chat.hear(answer)
