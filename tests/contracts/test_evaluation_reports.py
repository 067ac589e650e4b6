"""Evaluation reports: whole or not at all, newest first, and no name leads out of their folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from library_parts import NOW, report

from memory.adapters.evaluation_reports import FILE_BYTES_MAX, FolderOfReports
from memory.errors import BadInput, Unavailable
from memory.ports.operators import EvaluationReports
from memory.ports.paging import all_pages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "reports"


@pytest.fixture
def reports(folder: Path) -> EvaluationReports:
    return FolderOfReports(folder)


async def names(reports: EvaluationReports) -> list[str]:
    return [head.name for head in (await reports.page(limit=100)).items]


async def test_what_is_kept_is_found_as_it_was(reports: EvaluationReports) -> None:
    assert (await reports.page(limit=10)).items == ()
    for one in (report("recall-1", at=NOW, rows=(("全部", "0.5"), ("(none)", ""))), report("recall-1", at=NOW + 1)):
        await reports.keep(one)
        assert await reports.get("recall-1") == one
        assert (await reports.page(limit=10)).items == (one.head,)
    assert await reports.get("recall-2") is None


async def test_pages_are_newest_first_and_lose_none(reports: EvaluationReports) -> None:
    for number in range(7):
        await reports.keep(report(f"r{number}", at=NOW + number // 2))  # some of one moment
    pages = all_pages(lambda cursor: reports.page(limit=2, cursor=cursor))
    found = [head.name async for page in pages for head in page.items]
    assert found == ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]
    for cursor in ("x", "1.0", "now/r1", "/"):
        with pytest.raises(BadInput):
            await reports.page(limit=2, cursor=cursor)


@pytest.mark.parametrize("name", ["", ".", "..", "../turns", "a/b", ".hidden", "-x", "a b", "a\0", "ä", "x" * 101])
async def test_no_name_leads_out_of_the_folder(reports: EvaluationReports, folder: Path, name: str) -> None:
    with pytest.raises(BadInput):
        await reports.keep(report(name, at=NOW))
    with pytest.raises(BadInput):
        await reports.get(name)
    assert not folder.exists()


async def test_other_files_of_the_folder_are_left_out(reports: EvaluationReports, folder: Path) -> None:
    await reports.keep(report("good", at=NOW, rows=(("a", "1"),)))
    whole = (folder / "good.json").read_bytes()
    for name, content in {
        "torn.json": whole[: len(whole) // 2],
        "renamed.json": whole,
        "ragged.json": whole.replace(b'["a","1"]', b'["a"]').replace(b'"good"', b'"ragged"'),
        "huge.json": whole.replace(b'"good"', b'"huge"') + b" " * FILE_BYTES_MAX,
        "list.json": b"[]",
        "notes.txt": b"mine",
    }.items():
        (folder / name).write_bytes(content)
    assert await names(reports) == ["good"]
    assert [await reports.get(name) for name in ("torn", "renamed", "ragged", "huge", "list")] == [None] * 5


async def test_readers_never_see_half_a_report(reports: EvaluationReports, folder: Path) -> None:
    versions = [report("same", at=NOW + n, rows=tuple((f"row {row}", str(n)) for row in range(500))) for n in range(2)]
    await reports.keep(versions[0])

    async def write() -> None:
        for turn in range(40):
            await reports.keep(versions[turn % 2])

    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(write())
        while not writing.done():
            assert await reports.get("same") in versions
    assert [path.name for path in folder.iterdir()] == ["same.json"]


async def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable, match="reports"):
        await FolderOfReports(tmp_path / "file" / "reports").keep(report("r", at=NOW))
