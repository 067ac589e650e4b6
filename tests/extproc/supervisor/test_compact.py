"""`memproxy compact` as a command: erasures whose files are too large for a rewriting beside others come to an end."""

from __future__ import annotations

from pathlib import Path

import pytest
from reembed_command import OLD, Place, stored

from memory.adapters.file_scan import scanned
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.erasures import SqliteErasures
from memory.ports import MemoryFilter
from memory.ports.erasures import ErasureRequest

USER = "user-who-leaves-7f3a"
NOW = 1_750_000_000.0


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.data.mkdir()
    place.configure("http://127.0.0.1:9", OLD.dimension, model=OLD.model)
    return place


async def erase(place: Place) -> None:
    """The rows are gone, and bytes of them are in the files of the store and of the turn log."""
    await place.fill(*stored(40, user_id=USER), *stored(20, user_id="bob"))
    async with place.store(OLD) as store:
        await store.delete(USER, await store.ids(MemoryFilter(USER, status=None, with_raw=True)))
    async with SqliteDatabase(place.data / "turns.sqlite") as database:
        for number in range(50):
            words = f"{USER} said number {number} " * 100
            await database.write(
                lambda c, words=words: c.execute("INSERT INTO opted_out_users VALUES (?, 1.0)", (words,))
            )
        await database.write(lambda c: c.execute("DELETE FROM opted_out_users"))
        await SqliteErasures(database).begun(USER, ErasureRequest("e1", NOW, NOW, {"memories": 40}))


@pytest.mark.full("starts Milvus Lite four times")
async def test_it_ends_erasures_that_wait_and_loses_nothing(place: Place) -> None:
    await erase(place)
    assert {Path(one).parts[0] for one in scanned([place.data], [USER])[2]} >= {"milvus"}
    dry = (await place.run("--dry-run", "--json", part="compact")).shown
    assert (dry["is_dry_run"], dry["erasures"]) == (True, 1)
    done = await place.run(part="compact")
    assert done.code == 0, done.stderr
    assert "erasures that waited for it: 1" in done.stdout
    assert "MiB" in done.stderr  # the bar
    assert scanned([place.data], [USER])[2] == []
    async with SqliteDatabase(place.data / "turns.sqlite") as database:
        found = await SqliteErasures(database).get(USER, "e1")
        assert found is not None
        assert found.rewritten_at is not None
        refused = await place.run(part="compact")
        assert refused.code != 0
        assert "1 other processes of memproxy" in refused.stderr
    assert len(await place.records(OLD, "bob")) == 20
    again = (await place.run("--json", part="compact")).shown
    assert again["erasures"] == 0
    assert again["turns_sqlite_bytes"]["before"] == again["turns_sqlite_bytes"]["after"]


async def test_where_nothing_was_recorded_there_is_nothing_to_do(place: Place) -> None:
    assert (await place.run(part="compact")).stdout == "nothing to do: there is no turn log yet\n"
