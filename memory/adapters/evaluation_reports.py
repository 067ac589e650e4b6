"""Evaluation reports as JSON files in one folder: written by the command line, read by the API.

A file is written under another name and renamed, so that a reader sees all of it or nothing. Names are bounded to
letters, digits and a few signs: no name leads out of the folder.
"""

from __future__ import annotations

import asyncio
import string
import tempfile
from pathlib import Path

import msgspec

from memory.adapters import pages
from memory.errors import BadInput, Unavailable
from memory.model.evaluation_reports import EvaluationReport, ReportHead
from memory.ports import Page
from memory.typed import from_json

SUFFIX = ".json"
FILE_BYTES_MAX = 4 << 20  # a report has some KB; what is larger is none of ours
NAME_CHARACTERS_MAX = 100
_BEGIN = frozenset(string.ascii_letters + string.digits)
_NAME = _BEGIN | set("._-")


class FolderOfReports:
    """The folder is made by the first report."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep(self, report: EvaluationReport) -> None:
        path = self._path(report.head.name)
        try:
            await asyncio.to_thread(_written, path, msgspec.json.encode(report))
        except OSError as error:
            raise Unavailable("reports", f"cannot write {str(path)!r}: {error.strerror}") from error

    async def page(self, *, limit: int, cursor: str = "") -> Page[ReportHead]:
        heads = await asyncio.to_thread(self._heads)
        shown, more = pages.cut(((head.at, name) for name, head in heads.items()), limit=limit, cursor=cursor)
        return Page(tuple(heads[name] for _, name in shown), more)

    async def get(self, name: str) -> EvaluationReport | None:
        return await asyncio.to_thread(_read, self._path(name))

    def _path(self, name: str) -> Path:
        if not _is_name(name):
            raise BadInput("a report's name has 1 to 100 letters, digits, '.', '_' and '-', and begins with no sign")
        return self._folder / (name + SUFFIX)

    def _heads(self) -> dict[str, ReportHead]:
        found = (_read(path) for path in self._folder.glob(f"*{SUFFIX}") if _is_name(path.stem))
        return {one.head.name: one.head for one in found if one is not None}


def _is_name(name: str) -> bool:
    return 0 < len(name) <= NAME_CHARACTERS_MAX and name[0] in _BEGIN and _NAME.issuperset(name)


def _written(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as beside:
        whole = Path(beside) / path.name
        whole.write_bytes(content)
        whole.replace(path)


def _read(path: Path) -> EvaluationReport | None:
    """None if there is none, or no report: the folder is an operator's, who may keep other files there."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            return None
        report = from_json(path.read_bytes(), EvaluationReport)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    is_whole = all(len(row) == len(table.columns) for table in report.tables for row in table.rows)
    return report if report.head.name == path.stem and is_whole else None
