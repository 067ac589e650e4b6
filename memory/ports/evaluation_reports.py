"""The port of evaluation reports: what `memproxy eval` found, kept for the operator."""

from __future__ import annotations

from typing import Protocol

from memory.model.evaluation_reports import EvaluationReport, ReportsPage


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
