"""A note that is on its way to the disk: found at once where it was made, and never once it was forgotten elsewhere."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.notes import SqliteNoteBook
from memory.errors import Unavailable
from memory.model import PastNote

NOTE = PastNote("about m1", ("m1",), 7)


@dataclass
class Desk:
    """A filter, whose disk may be made to wait, and the process behind the API."""

    database: SqliteDatabase
    filter_: SqliteNoteBook
    api: SqliteNoteBook

    def busy_disk(self) -> Event:
        """Its writer is stuck, outside of any transaction of the file, until the event is set."""
        may_go_on = Event()

        def wait(_: sqlite3.Connection) -> None:
            may_go_on.wait(5)

        assert self.database._writer is not None
        self.database._writer.submit(wait, None)  # type: ignore[arg-type]
        return may_go_on


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with SqliteDatabase(tmp_path / "t.sqlite") as own, SqliteDatabase(tmp_path / "t.sqlite") as other:
        yield Desk(own, SqliteNoteBook(own, waits_for_others=False), SqliteNoteBook(other))


async def test_the_process_that_made_it_finds_it_before_it_is_written(desk: Desk) -> None:
    may_go_on = desk.busy_disk()
    async with asyncio.timeout(1):  # nobody waits for the disk
        await desk.filter_.keep("ann", "k", NOTE, made_at=1.0)
    assert await desk.filter_.find("ann", ["k"]) == {"k": NOTE}
    assert await desk.filter_.find("bob", ["k"]) == {}
    assert await desk.api.find("ann", ["k"]) == {}
    may_go_on.set()
    await desk.database.write(lambda _: None)
    assert await desk.api.find("ann", ["k"]) == {"k": NOTE}
    await asyncio.sleep(0.01)
    assert not desk.filter_._on_their_way


async def test_it_takes_the_place_of_an_older_one_at_once(desk: Desk) -> None:
    await desk.filter_.keep("ann", "k", PastNote("old", ("m0",), 7), made_at=1.0)
    await desk.database.write(lambda _: None)
    may_go_on = desk.busy_disk()
    await desk.filter_.keep("ann", "k", NOTE, made_at=2.0)
    assert await desk.filter_.find("ann", ["k"]) == {"k": NOTE}
    may_go_on.set()


@pytest.mark.parametrize("forgotten", [["m1"], []])
async def test_what_another_process_forgot_meanwhile_is_not_found(desk: Desk, forgotten: list[str]) -> None:
    may_go_on = desk.busy_disk()
    await desk.filter_.keep("ann", "k", NOTE, made_at=1.0)
    await desk.api.drop("ann", forgotten, now=2.0)
    assert await desk.filter_.find("ann", ["k"]) == {}
    may_go_on.set()
    await desk.database.write(lambda _: None)
    assert await desk.filter_.find("ann", ["k"]) == {}
    assert await desk.api.find("ann", ["k"]) == {}


async def test_where_chats_are_spread_over_filters_the_others_find_it_on_return(desk: Desk) -> None:
    shared = SqliteNoteBook(desk.database, waits_for_others=True)
    for number in range(50):
        await shared.keep("ann", f"k{number}", NOTE, made_at=1.0)
        assert await desk.api.find("ann", [f"k{number}"]) == {f"k{number}": NOTE}


async def test_a_note_that_cannot_be_written_is_not_remembered_for_ever(tmp_path: Path) -> None:
    async with SqliteDatabase(tmp_path / "t.sqlite") as database:
        book = SqliteNoteBook(database, waits_for_others=False)
    await book.keep("ann", "k", NOTE, made_at=1.0)  # closed: nothing is written any more
    assert not book._on_their_way
    with pytest.raises(Unavailable):
        await book.find("ann", ["k"])
