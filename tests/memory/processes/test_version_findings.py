"""A part that was not restarted after an upgrade is named, whatever it shares with the others: a file or a server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from postgres_server import postgres_server

from memory.adapters.sql.postgres_database import PostgresDatabase
from memory.adapters.sql.postgres_pool import PostgresAddress
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.processes.composition import SYSTEM_CLOCK
from memory.processes.findings import Finding, Level
from memory.processes.running_parts import introduction
from memory.processes.state_parts import open_examined
from memory.processes.version_findings import version_finding
from memory.runtime.release import RUNNING, Release, release_of
from memory.settings import Settings
from memory.settings.loader import load


class SharedState:
    """Where the parts of a deployment meet: a turn log's file, or a PostgreSQL server."""

    def __init__(self, folder: Path, *, is_postgres: bool) -> None:
        self.is_postgres = is_postgres
        file = folder / "settings.yaml"
        file.write_text(f"data_dir: {folder}\n" + (f"database_url: {postgres_server().url}\n" if is_postgres else ""))
        self.settings: Settings = load(file, {}, {})
        if is_postgres:
            postgres_server().empty()

    @asynccontextmanager
    async def running(self, *introductions: str) -> AsyncIterator[None]:
        """Processes that introduce themselves so."""
        async with AsyncExitStack() as stack:
            for words in introductions:
                if self.is_postgres:
                    address = PostgresAddress(postgres_server().url)
                    await stack.enter_async_context(PostgresDatabase(address, introduction=words))
                else:
                    path = self.settings.turn_log_path
                    await stack.enter_async_context(SqliteDatabase(path, introduction=words))
            yield

    async def examined(self, installed: Release) -> Finding:
        async with open_examined(self.settings, SYSTEM_CLOCK) as state:
            return await version_finding(state, installed)


@pytest.fixture(params=[False, True], ids=["file", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> SharedState:
    return SharedState(tmp_path, is_postgres=request.param)


async def test_parts_that_run_what_is_installed_are_counted(shared: SharedState) -> None:
    async with shared.running(introduction("filter"), introduction("filter"), introduction("worker")):
        found = await shared.examined(RUNNING)
    assert (found.level, found.says) == (Level.OK, f"{RUNNING}, run by 2 filter, 1 worker")
    found = await shared.examined(RUNNING)  # they have left, and the doctor itself is none
    assert (found.level, found.says) == (Level.OK, f"{RUNNING}, run by no part now")


async def test_a_part_that_was_not_restarted_is_named(shared: SharedState) -> None:
    async with shared.running(introduction("filter"), introduction("worker").replace(RUNNING.version, "0.0.9")):
        found = await shared.examined(RUNNING)
    assert (found.level, "memproxy restart" in found.advice) == (Level.WARN, True)
    assert found.says.startswith(f"{RUNNING} is installed; worker (pid {os.getpid()}) runs 0.0.9")
    assert "filter" not in found.says


async def test_a_part_of_a_release_that_does_not_introduce_itself_is_stale(shared: SharedState) -> None:
    async with shared.running("", introduction("api")):
        found = await shared.examined(RUNNING)
    assert (found.level, "1 of a release that does not state its version" in found.says) == (Level.WARN, True)


async def test_nobody_can_be_asked_while_the_state_is_away() -> None:
    assert (await version_finding(None, RUNNING)).says == f"{RUNNING} is installed; no part can be asked"


def installed(folder: Path, version: str, code: str) -> Distribution:
    """As an installer leaves a wheel on disk."""
    made = folder / f"memproxy-{version}.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: memproxy\nVersion: {version}\n")
    compiled = f"memory/__pycache__/__init__.cpython-311.pyc,sha256={folder.name},9\n"
    (made / "RECORD").write_text(f"memory/__init__.py,sha256={code},1\n{compiled}memproxy.dist-info/RECORD,,\n")
    return Distribution.at(made)


def test_code_of_one_version_that_was_installed_again_is_told_apart(tmp_path: Path) -> None:
    first = release_of(installed(tmp_path / "a", "0.1.0", "one"))
    same = release_of(installed(tmp_path / "b", "0.1.0", "one"))
    patched = release_of(installed(tmp_path / "c", "0.1.0", "two"))
    newer = release_of(installed(tmp_path / "d", "0.2.0", "one"))
    assert (first.differs_from(same), first.differs_from(patched), first.differs_from(newer)) == (False, True, True)
    assert str(first) == f"0.1.0 ({first.code})"
    assert not first.differs_from(Release("0.1.0"))  # a working tree, of which nothing is known


async def test_a_process_that_died_without_leaving_is_not_asked(tmp_path: Path) -> None:
    shared = SharedState(tmp_path, is_postgres=False)
    async with shared.running(introduction("api")):
        dead = shared.settings.turn_log_path.with_name("turns.sqlite.owners") / ("0" * 32)
        dead.write_text(introduction("worker").replace(RUNNING.version, "0.0.9"))  # without a lock
        found = await shared.examined(RUNNING)
    assert found.level is Level.OK
