"""A file of an earlier release becomes one of this release: the same tables, and what stood in them.

`tests/data/log_version_3.sql` is what release 0.1 made of an empty file, as SQLite dumps it.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from memory.adapters.sql.profiles import SqlProfiles
from memory.adapters.sql.projects import SqlProjects
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.model.projects import Invitation, ProjectMember, ProjectRole, SharedProject

AT = 1_750_000_000.0
VERSION_3 = Path(__file__).parents[3] / "data" / "log_version_3.sql"


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """With a project of two members."""
    path = tmp_path / "turns.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(VERSION_3.read_text(encoding="utf-8"))
        connection.execute("PRAGMA application_id = 1836086392")
        connection.execute("PRAGMA user_version = 3")
        connection.execute("INSERT INTO projects VALUES ('k1', '', 'apollo', ?)", (AT,))
        connection.executemany(
            "INSERT INTO project_members VALUES ('k1', ?, ?, ?)", [("ann", "owner", AT), ("bob", "viewer", AT + 1)]
        )
    connection.close()
    return path


def shape(path: Path) -> dict[str, object]:
    """Of every table its columns, whatever their order, and the names of indexes and triggers."""
    with sqlite3.connect(path) as connection:
        named = connection.execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
        tables = [name for kind, name in named if kind == "table"]
        columns = {name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} for name in tables}
    connection.close()
    return {"columns": columns, "others": {one for one in named if one[0] != "table"}}


async def test_it_has_the_tables_of_a_new_one_afterwards(earlier: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.sqlite"
    for path in (earlier, new, earlier):
        async with SqliteDatabase(path):
            pass
    assert shape(earlier) == shape(new)


async def test_members_stay_and_whom_they_invite_joins_them(earlier: Path) -> None:
    async with SqliteDatabase(earlier) as database:
        projects = SqlProjects(database)
        found = await projects.access("bob", "apollo")
        assert found is not None
        assert (found.project, found.role) == (SharedProject("k1", "", "apollo", AT), ProjectRole.VIEWER)
        assert [await projects.count_chosen(user) for user in ("ann", "bob")] == [0, 0]
        assert await projects.create(SharedProject("k2", "", "apollo", AT), "cid"), "it is taken from nobody"
        await projects.accept(Invitation(found.project, "dan", ProjectRole.VIEWER, "ann", AT), at=AT + 2)
        assert [one.user_id for one in await projects.members("k1")] == ["ann", "bob", "dan"]
        assert (await projects.members("k1"))[1] == ProjectMember("bob", ProjectRole.VIEWER, AT + 1)


async def test_whoever_was_not_queued_while_profiles_were_off_is_queued(earlier: Path) -> None:
    with sqlite3.connect(earlier) as connection:
        connection.execute("INSERT INTO profiles_switched_off VALUES (1)")
        connection.executemany(
            "INSERT INTO users (user_id, revision, known_since) VALUES (?, ?, 0)", [("ann", 4), ("bob", 2), (" k1", 2)]
        )
        connection.execute("INSERT INTO profiles_built VALUES ('bob', 2)")
    connection.close()
    async with SqliteDatabase(earlier) as database:
        assert await SqlProfiles(database).stale(limit=9) == ["ann"]
