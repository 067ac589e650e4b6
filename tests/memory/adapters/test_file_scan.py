"""What is looked for is found in every file of a folder, wherever its bytes are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from memory.adapters.file_scan import UNREAD_NAMED_MAX, files_scanned
from memory.adapters.whole_ids import WholeId
from memory.model.erasures import PlaceReport

WORD = "Quetzalbimxford"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """With a folder and a file on another disk, as far as anybody sees, and links that lead in circles or nowhere."""
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    for folder in (data, elsewhere / "milvus" / "wal"):
        folder.mkdir(parents=True)
    (elsewhere / "milvus" / "wal" / "0.log").write_bytes(WORD.encode())
    (elsewhere / "turns.sqlite").write_bytes(WORD.encode())
    (elsewhere / "foreign").write_bytes(WORD.encode())
    (data / "milvus").symlink_to(elsewhere / "milvus")
    (data / "turns.sqlite").symlink_to(elsewhere / "turns.sqlite")
    (data / "plain").write_bytes(b"nothing")
    (elsewhere / "milvus" / "circle").symlink_to(data)
    (data / "itself").symlink_to(data / "itself")
    (data / "gone").symlink_to(data / "nowhere")
    return data


def scanned(*places: Path, wanted: str = WORD) -> PlaceReport:
    return files_scanned(places, WholeId(wanted))


def test_files_behind_links_are_read_once(data: Path) -> None:
    found = scanned(data, data / "plain")
    assert (found.items, found.found_in) == (4, ("milvus/wal/0.log", "turns.sqlite"))
    assert (found.not_searched, scanned(data, wanted="Wombat").found_in) == ((), ())


@contextmanager
def without_rights() -> Iterator[None]:
    """Nobody's rights, where the tests run as root, who may read everything."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder that anybody may read, with a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        (path / "turns.sqlite").write_bytes(WORD.encode())
        yield path


def test_folders_and_files_that_cannot_be_read_are_named_and_the_others_are_searched(disk: Path) -> None:
    """As `lost+found` of a disk whose top folder is the data directory."""
    (disk / "lost+found").mkdir()
    (disk / "key").write_bytes(WORD.encode())
    (disk / "closed").mkdir()
    (disk / "closed" / "file").write_bytes(WORD.encode())
    for name, rights in (("lost+found", 0o000), ("key", 0o000), ("closed", 0o444)):
        (disk / name).chmod(rights)
    with without_rights():
        found = scanned(disk)
    unread = [f"{name}: Permission denied" for name in ("closed/file", "key", "lost+found")]
    assert (found.items, found.found_in, list(found.not_searched)) == (1, ("turns.sqlite",), unread)


def test_of_very_many_that_cannot_be_read_some_are_named(disk: Path) -> None:
    for number in range(UNREAD_NAMED_MAX + 3):
        (disk / f"{number:03}").mkdir(mode=0o000)
    with without_rights():
        found = scanned(disk)
    assert found.found_in == ("turns.sqlite",)
    assert found.not_searched[-2:] == (f"{UNREAD_NAMED_MAX - 1:03}: Permission denied", "3 more files and folders")


def test_files_that_cannot_be_read_do_not_end_the_look(data: Path) -> None:
    (data / "memory").symlink_to("/proc/self/mem")  # may be opened, and its beginning may not be read
    (data / "killed.parquet").write_bytes(b"PAR1" + WORD.encode())
    (data / "broken.sqlite").write_bytes(b"SQLite format 3\0" + bytes(84))
    found = scanned(data)
    unread = ["broken.sqlite: file is not a database", "killed.parquet: it is not whole", "memory: Input/output error"]
    assert list(found.not_searched) == unread
    assert found.found_in == ("milvus/wal/0.log", "turns.sqlite")
