"""The port of evaluation reports: what `memproxy eval` found, kept for the operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Figures as they are shown: each row has as many cells as there are columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ReportHead:
    """`name`: unique. `evaluation`: which command of `memproxy eval`; `file`: the name of its records, without folder.

    `version`: of memproxy. `at`: when it ended, in Unix seconds.
    """

    name: str
    evaluation: str
    file: str
    version: str
    at: float


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    head: ReportHead
    tables: tuple[ReportTable, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class ReportsPage:
    """Newest first. `next_cursor` is "" on the last page."""

    heads: tuple[ReportHead, ...]
    next_cursor: str


class EvaluationReports(Protocol):
    """Raises `BadInput` for a name that no report may have, and `Unavailable`."""

    async def keep(self, report: EvaluationReport) -> None:
        """Store the report whole, or not at all; an earlier one of that name is replaced."""
        ...

    async def page(self, *, limit: int, cursor: str = "") -> ReportsPage:
        """Raises `BadInput` for a cursor that is none. What cannot be read is left out."""
        ...

    async def get(self, name: str) -> EvaluationReport | None: ...


class NoReports:
    """Of a process for which no folder of reports is set."""

    async def keep(self, report: EvaluationReport) -> None:
        return None

    async def page(self, *, limit: int, cursor: str = "") -> ReportsPage:
        return ReportsPage((), "")

    async def get(self, name: str) -> EvaluationReport | None:
        return None


NO_REPORTS = NoReports()

__all__ = [
    "NO_REPORTS",
    "EvaluationReport",
    "EvaluationReports",
    "NoReports",
    "ReportHead",
    "ReportTable",
    "ReportsPage",
]
