"""What the doctor says of the disk, and of parts that were not restarted after an upgrade; and what to do.

The numbers of a disk come from `statvfs` as a real call would give them; one test runs on a file system of 192 KiB.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from postgres_server import postgres_server
from written_settings import written_settings

from memory.adapters.sql.postgres_database import PostgresDatabase
from memory.adapters.sql.postgres_pool import PostgresAddress
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.processes.composition import SYSTEM_CLOCK
from memory.processes.disk_findings import Disk, data_directory_finding
from memory.processes.doctor_checks import version_finding
from memory.processes.findings import Finding, Level
from memory.processes.kept_state import introduction
from memory.processes.state_parts import open_examined
from memory.runtime.release import RUNNING, Release, release_of
from memory.settings import Settings

BLOCK = 4_096
PLENTY = 1 << 40


def settings_of(data_dir: Path, folder: Path) -> Settings:
    return written_settings(folder, data_dir=str(data_dir))


def with_free(free: int, *, inodes: int = 1_000) -> Callable[[Path], os.statvfs_result]:
    """A disk with that many bytes free for us, and as many again for root, who does not run us."""

    def usage(_: Path) -> os.statvfs_result:
        blocks = free // BLOCK
        return os.statvfs_result((BLOCK, BLOCK, 4 * blocks, 2 * blocks, blocks, 2_000, inodes, inodes, 0, 255))

    return usage


def refusing(number: int) -> Callable[[Path], os.statvfs_result]:
    def usage(folder: Path) -> os.statvfs_result:
        raise OSError(number, os.strerror(number), str(folder))

    return usage


@pytest.mark.parametrize(
    ("kind", "usage", "level", "words"),
    [
        ("ext4", with_free(PLENTY), Level.OK, ["GiB free"]),
        ("ext4", with_free(1 << 30), Level.WARN, ["nearly full", "1024 MiB", "free space", "keep_days"]),
        ("ext4", with_free(50 << 20), Level.FAIL, ["nearly full", "50 MiB", "free space"]),
        ("ext4", with_free(BLOCK), Level.FAIL, ["is full", "4 KiB", "free space"]),
        ("ext4", with_free(PLENTY, inodes=0), Level.FAIL, ["no free inodes", "delete files"]),
        ("ext4", refusing(errno.ENOSPC), Level.FAIL, ["cannot be written", "free space"]),
        ("ext4", refusing(errno.EROFS), Level.FAIL, ["cannot be written", "read-only"]),
        ("ext4", refusing(errno.EDQUOT), Level.FAIL, ["cannot be written", "quota"]),
        ("ext4", refusing(errno.EACCES), Level.FAIL, ["cannot be written", "chown"]),
        ("nfs4", with_free(PLENTY), Level.FAIL, ["network file system nfs4", "local disk", "database_url"]),
        ("cifs", with_free(PLENTY), Level.FAIL, ["network file system cifs", "SQLite"]),
        ("tmpfs", with_free(PLENTY), Level.WARN, ["in memory (tmpfs)", "restarts"]),
    ],
    ids="well warned nearly_full full inodes no_space read_only quota rights nfs4 cifs tmpfs".split(),
)
def test_it_names_what_is_the_matter_with_the_disk_and_what_to_do(
    tmp_path: Path, kind: str, usage: Callable[[Path], os.statvfs_result], level: Level, words: list[str]
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"overlay / overlay rw 0 0\nserver:/export {tmp_path.resolve()} {kind} rw 0 0\n")
    found = data_directory_finding(settings_of(tmp_path, tmp_path), Disk(usage, mounts))
    said = found.says + found.advice
    assert (found.level, [word for word in words if word not in said]) == (level, []), found


def test_the_folder_of_the_embedded_store_may_be_on_a_disk_of_its_own(tmp_path: Path) -> None:
    store = tmp_path / "milvus"
    store.mkdir()

    def usage(folder: Path) -> os.statvfs_result:
        return with_free(BLOCK if folder == store else PLENTY)(folder)

    found = data_directory_finding(settings_of(tmp_path, tmp_path), Disk(usage))
    assert (found.level, str(store) in found.says) == (Level.FAIL, True)


def test_a_folder_of_somebody_else_fails_and_a_file_in_its_place(tmp_path: Path) -> None:
    """In `/proc` not even root can make a file; other users also not in a folder without their right to write."""
    refused = {Path("/proc/self/net"): "cannot be written", tmp_path / "settings.yaml": "is a file"}
    if os.getuid():
        (tmp_path / "others").mkdir(mode=0o500)
        refused[tmp_path / "others"] = "cannot be written"
    for folder, says in refused.items():
        found = data_directory_finding(settings_of(folder, tmp_path))
        assert (found.level, says in found.says, bool(found.advice)) == (Level.FAIL, True, True), found


FILLED_UP = """
mount -t tmpfs -o size=192k tmpfs "$1" || exit 77
head -c 1M /dev/zero > "$1/filler" 2>/dev/null
exec "$2" -m memory doctor --json --config "$3"
"""


def test_on_a_real_disk_that_is_full_doctor_says_so(tmp_path: Path) -> None:
    folder, config = tmp_path / "small", tmp_path / "settings.yaml"
    folder.mkdir()
    config.write_text(json.dumps({"data_dir": str(folder), "models_dir": str(tmp_path / "models")}))
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FILLED_UP, "sh"]
    ended = subprocess.run(
        [*words, str(folder), sys.executable, str(config)], capture_output=True, text=True, timeout=120
    )
    if ended.returncode == 77 or "unshare" in ended.stderr:
        pytest.skip(f"NO FULL DISK: this machine forbids file systems of its own to users: {ended.stderr[-200:]}")
    assert ended.returncode == 1, ended.stderr
    checks = {one["check"]: one for one in json.loads(ended.stdout)["checks"]}
    found = checks["data directory"]
    assert (found["level"], "free space" in found["advice"]) == ("fail", True), found
    assert "full" in found["says"] or os.strerror(errno.ENOSPC) in found["says"], found


# Parts of an older release, whatever they share: a file, or a server


class SharedState:
    """Where the parts of a deployment meet: a turn log's file, or a PostgreSQL server."""

    def __init__(self, folder: Path, *, is_postgres: bool) -> None:
        self.is_postgres = is_postgres
        self.settings = written_settings(folder, data_dir=str(folder))
        if is_postgres:
            self.settings = written_settings(folder, data_dir=str(folder), database_url=postgres_server().url)
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


FILTER, WORKER = introduction("filter"), introduction("worker")
STALE = f"{RUNNING} is installed; "


@pytest.mark.parametrize(
    ("introductions", "level", "says"),
    [
        ((FILTER, FILTER, WORKER), Level.OK, f"{RUNNING}, run by 2 filter, 1 worker"),
        ((), Level.OK, f"{RUNNING}, run by no part now"),  # the doctor itself is none
        (
            (FILTER, WORKER.replace(RUNNING.version, "0.0.9")),
            Level.WARN,
            f"{STALE}worker (pid {os.getpid()}) runs 0.0.9" + str(RUNNING).removeprefix(RUNNING.version),
        ),
        (("", WORKER), Level.WARN, f"{STALE}1 of a release that does not state its version"),
    ],
    ids="all_of_today none one_not_restarted one_that_says_nothing".split(),
)
async def test_parts_are_counted_and_those_that_were_not_restarted_named(
    shared: SharedState, introductions: tuple[str, ...], level: Level, says: str
) -> None:
    async with shared.running(*introductions):
        found = await shared.examined(RUNNING)
    assert (found.level, found.says) == (level, says)
    assert ("memproxy restart" in found.advice) is (level is Level.WARN)


def installed(folder: Path, version: str, code: str) -> Release:
    """As an installer leaves a wheel on disk."""
    made = folder / f"memproxy-{version}.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: memproxy\nVersion: {version}\n")
    compiled = f"memory/__pycache__/__init__.cpython-311.pyc,sha256={folder.name},9\n"
    (made / "RECORD").write_text(f"memory/__init__.py,sha256={code},1\n{compiled}memproxy.dist-info/RECORD,,\n")
    return release_of(Distribution.at(made))


def test_code_of_one_version_that_was_installed_again_is_told_apart(tmp_path: Path) -> None:
    first = installed(tmp_path / "a", "0.1.0", "one")
    others = {"same": ("0.1.0", "one"), "patched": ("0.1.0", "two"), "newer": ("0.2.0", "one")}
    differs = {name: first.differs_from(installed(tmp_path / name, *of)) for name, of in others.items()}
    assert differs == {"same": False, "patched": True, "newer": True}
    assert str(first) == f"0.1.0 ({first.code})"
    assert not first.differs_from(Release("0.1.0"))  # a working tree, of which nothing is known


async def test_a_process_that_died_without_leaving_is_not_asked(tmp_path: Path) -> None:
    shared = SharedState(tmp_path, is_postgres=False)
    async with shared.running(introduction("api")):
        dead = shared.settings.turn_log_path.with_name("turns.sqlite.owners") / ("0" * 32)
        dead.write_text(introduction("worker").replace(RUNNING.version, "0.0.9"))  # without a lock
        found = await shared.examined(RUNNING)
    assert found.level is Level.OK
    assert (await version_finding(None, RUNNING)).says == f"{RUNNING} is installed; no part can be asked"
