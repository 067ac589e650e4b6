"""A database's file is written anew, and holds no bytes of deleted rows: while others have it open, or nobody has."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from words_left import files_with

from memory.adapters.sql import sqlite_compacting as compacting
from memory.adapters.sql.sqlite_compacting import compact, copy_of, sizes_of
from memory.adapters.sql.sqlite_database import SqliteConnection, SqliteDatabase
from memory.errors import Unavailable

GONE, KEPT = "Quetzalbimxford", "Wombatlyxenham"
ROWS = 500


def remember(connection: SqliteConnection, *, words: Sequence[str]) -> None:
    """Rows with these words in turn, of many lengths."""
    rows = [(f"{n}-{word}", f"{word} {n} " * (1 + n % 120), 1.0) for n in range(ROWS) for word in words]
    connection.raw.executemany("INSERT INTO opted_out_users (user_hash, opted_out_at) VALUES (? || ?, ?)", rows)


def forget(connection: SqliteConnection) -> None:
    connection.raw.execute("DELETE FROM opted_out_users WHERE user_hash LIKE ?", (f"%-{GONE}%",))


def count(connection: SqliteConnection) -> int:
    return int(connection.raw.execute("SELECT count(*) FROM opted_out_users").fetchone()[0])


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A closed database, half of which is deleted rows."""
    path = tmp_path / "turns.sqlite"
    async with SqliteDatabase(path) as database:
        await database.write(partial(remember, words=(GONE, KEPT)))
        await database.write(forget)
    return path


def nothing(*_: Any) -> None: ...


async def test_the_database_keeps_no_copy_of_what_is_deleted(path: Path) -> None:
    async with SqliteDatabase(path) as database, SqliteDatabase(path) as other:
        await database.write(partial(remember, words=(f"{GONE} new",)))
        await database.write(forget)
        assert files_with([path.parent], [GONE])
        await database.rewrite()
        assert files_with([path.parent], [GONE]) == []
        assert files_with([path.parent], [KEPT]) == [path.name]
        assert await other.read(count) == ROWS
        await other.write(partial(remember, words=(GONE,)))


async def test_a_database_that_is_too_large_is_not_rewritten_while_others_write(tmp_path: Path) -> None:
    async with SqliteDatabase(tmp_path / "turns.sqlite", rewrite_bytes_max=1_000) as database:
        with pytest.raises(Unavailable, match="memproxy compact"):
            await database.rewrite()


async def test_nothing_happens_while_somebody_has_it_open(path: Path) -> None:
    async with SqliteDatabase(path) as database:
        await database.read(count)
        with pytest.raises(Unavailable, match="locked"):
            compact(path, advance=nothing, check_alone=nothing)
        with pytest.raises(Unavailable, match="locked"):
            sizes_of(path)
        await database.write(forget)
    assert not copy_of(path).exists()


async def test_whoever_comes_meanwhile_keeps_the_file(path: Path) -> None:
    before = path.read_bytes()

    def refuse() -> None:
        with closing(sqlite3.connect(path, timeout=0.0)) as other, pytest.raises(sqlite3.OperationalError):
            count(SqliteConnection(other))
        raise RuntimeError("somebody came")

    with pytest.raises(RuntimeError):
        compact(path, advance=nothing, check_alone=refuse)
    assert not copy_of(path).exists()
    async with SqliteDatabase(path) as database:
        assert await database.read(count) == ROWS
    assert len(before) == path.stat().st_size


async def test_a_full_disk_is_noticed_before_anything_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(path.parent)
    monkeypatch.setattr(compacting.shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
    with pytest.raises(Unavailable, match="has 1 MiB free, and the new file needs"):
        compact(path, advance=nothing, check_alone=nothing)
    async with SqliteDatabase(path) as database:
        assert await database.read(count) == ROWS


async def test_what_a_killed_compaction_left_goes_with_the_next_start(path: Path) -> None:
    copy_of(path).write_text(GONE)
    async with SqliteDatabase(path):
        assert not copy_of(path).exists()


async def test_it_is_smaller_private_and_holds_all_rows_and_nothing_that_was_deleted(path: Path) -> None:
    before, steps = path.stat().st_size, list[tuple[int, int]]()
    said = sizes_of(path)
    sizes = compact(path, advance=lambda done, total: steps.append((done, total)), check_alone=nothing)
    assert (sizes.before, sizes.after) == (before, path.stat().st_size)
    assert said.before == before > said.after >= sizes.after  # what it said that it would need
    assert steps[-1][0] == steps[-1][1]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.glob("turns.sqlite*") if one.is_file()] == [path.name]
    assert files_with([path.parent], [GONE]) == []
    async with SqliteDatabase(path) as database:
        assert await database.read(count) == ROWS
        await database.write(partial(remember, words=(GONE,)))
