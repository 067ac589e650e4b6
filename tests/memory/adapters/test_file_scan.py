"""What is looked for is found in every file of a folder, wherever its bytes are."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.adapters.file_scan import FolderScan, scanned

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


def test_files_behind_links_are_read_once(data: Path) -> None:
    assert scanned([data], [WORD]) == (3, 7 + 2 * len(WORD), ["milvus/wal/0.log", "turns.sqlite"])
    assert scanned([data], ["Wombat"])[2] == []


async def test_the_process_that_looks_finds_the_same(data: Path) -> None:
    found = await FolderScan([data, data / "plain"]).scan([WORD])
    assert (found.items, found.found_in) == (4, ("milvus/wal/0.log", "turns.sqlite"))
