"""What the doctor says of the disk: full, nearly full, without inodes, read-only, of the network; and what to do.

The numbers come from `statvfs` as a real call would give them; one test runs on a real file system of 192 KiB.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.processes.disk_findings import Disk, data_directory_finding
from memory.processes.findings import Level
from memory.settings import Settings
from memory.settings.loader import load

BLOCK = 4_096
PLENTY = 1 << 40


def settings_of(data_dir: Path, folder: Path) -> Settings:
    file = folder / "settings.yaml"
    file.write_text(json.dumps({"data_dir": str(data_dir)}))
    return load(file, {}, {})


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
    ("usage", "level", "words"),
    [
        (with_free(PLENTY), Level.OK, ["GiB free"]),
        (with_free(1 << 30), Level.WARN, ["nearly full", "1024 MiB", "free space", "keep_days"]),
        (with_free(50 << 20), Level.FAIL, ["nearly full", "50 MiB", "free space"]),
        (with_free(BLOCK), Level.FAIL, ["is full", "4 KiB", "free space"]),
        (with_free(PLENTY, inodes=0), Level.FAIL, ["no free inodes", "delete files"]),
        (refusing(errno.ENOSPC), Level.FAIL, ["cannot be written", "free space"]),
        (refusing(errno.EROFS), Level.FAIL, ["cannot be written", "read-only"]),
        (refusing(errno.EDQUOT), Level.FAIL, ["cannot be written", "quota"]),
        (refusing(errno.EACCES), Level.FAIL, ["cannot be written", "chown"]),
    ],
    ids=["well", "warned", "nearly full", "full", "inodes", "no space", "read-only", "quota", "rights"],
)
def test_it_names_what_the_disk_lacks_and_what_to_do(
    tmp_path: Path, usage: Callable[[Path], os.statvfs_result], level: Level, words: list[str]
) -> None:
    local = tmp_path / "mounts"
    local.write_text("/dev/sda / ext4 rw 0 0\n")
    found = data_directory_finding(settings_of(tmp_path, tmp_path), Disk(usage, local))
    said = found.says + found.advice
    assert (found.level, [word for word in words if word not in said]) == (level, []), found


def test_the_folder_of_the_embedded_store_may_be_on_a_disk_of_its_own(tmp_path: Path) -> None:
    store = tmp_path / "milvus"
    store.mkdir()

    def usage(folder: Path) -> os.statvfs_result:
        return with_free(BLOCK if folder == store else PLENTY)(folder)

    found = data_directory_finding(settings_of(tmp_path, tmp_path), Disk(usage))
    assert (found.level, str(store) in found.says) == (Level.FAIL, True)


@pytest.mark.parametrize(
    ("kind", "level", "words"),
    [
        ("nfs4", Level.FAIL, ["network file system nfs4", "local disk", "database_url"]),
        ("cifs", Level.FAIL, ["network file system cifs", "SQLite"]),
        ("tmpfs", Level.WARN, ["in memory (tmpfs)", "restarts"]),
        ("ext4", Level.OK, ["GiB free"]),
    ],
)
def test_it_names_a_file_system_that_does_not_keep_turns(
    tmp_path: Path, kind: str, level: Level, words: list[str]
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"overlay / overlay rw 0 0\nserver:/export {tmp_path.resolve()} {kind} rw 0 0\n")
    found = data_directory_finding(settings_of(tmp_path, tmp_path), Disk(with_free(PLENTY), mounts))
    said = found.says + found.advice
    assert (found.level, [word for word in words if word not in said]) == (level, []), found


def test_a_folder_of_somebody_else_fails(tmp_path: Path) -> None:
    """In `/proc` not even root can make a file; other users also not in a folder without their right to write."""
    folders = [Path("/proc/self/net")]
    if os.getuid():
        folders.append(tmp_path / "others")
        folders[-1].mkdir(mode=0o500)
    for folder in folders:
        found = data_directory_finding(settings_of(folder, tmp_path))
        assert (found.level, "cannot be written" in found.says, bool(found.advice)) == (Level.FAIL, True, True), found


def test_a_file_in_the_folders_place_fails(tmp_path: Path) -> None:
    found = data_directory_finding(settings_of(tmp_path / "settings.yaml", tmp_path))
    assert (found.level, "is a file" in found.says) == (Level.FAIL, True)


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
