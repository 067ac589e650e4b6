"""Projects in a file of a release that knew no invitations: members stay, and it gets the tables that it lacks."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.projects import SqliteProjects
from memory.model.projects import Invitation, ProjectMember, ProjectRole, SharedProject

AT = 1_750_000_000.0


async def test_its_members_stay_and_whom_they_invite_joins_them(tmp_path: Path) -> None:
    path = tmp_path / "turns.sqlite"
    async with SqliteDatabase(path):
        pass
    with sqlite3.connect(path) as earlier:
        for table in ("project_invitations", "project_choices"):
            earlier.execute(f"DROP TABLE {table}")
        earlier.execute("INSERT INTO projects VALUES ('k1', '', 'apollo', ?)", (AT,))
        earlier.executemany(
            "INSERT INTO project_members VALUES ('k1', ?, ?, ?)", [("ann", "owner", AT), ("bob", "viewer", AT + 1)]
        )
    earlier.close()
    async with SqliteDatabase(path) as database:
        projects = SqliteProjects(database)
        found = await projects.access("bob", "apollo")
        assert found is not None
        assert (found.project, found.role) == (SharedProject("k1", "", "apollo", AT), ProjectRole.VIEWER)
        assert [await projects.count_chosen(user) for user in ("ann", "bob")] == [0, 0]
        assert await projects.create(SharedProject("k2", "", "apollo", AT), "cid"), "it is taken from nobody"
        await projects.accept(Invitation(found.project, "dan", ProjectRole.VIEWER, "ann", AT), at=AT + 2)
        assert [one.user_id for one in await projects.members("k1")] == ["ann", "bob", "dan"]
        assert (await projects.members("k1"))[1] == ProjectMember("bob", ProjectRole.VIEWER, AT + 1)
