"""Evaluation reports: where they are kept, and what is said of the one that is made now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from memory.adapters.evaluation_reports import FolderOfReports
from memory.evaluation.report import Table
from memory.model.evaluation_reports import EvaluationReport, ReportHead, ReportTable
from memory.processes.composition import SYSTEM_CLOCK
from memory.settings import Settings


async def kept_report(
    settings: Settings, evaluation: str, file: Path, tables: Sequence[Table], *, named: str = ""
) -> str:
    """Keep these tables as a report; returns its name. Raises `BadInput` for a bad one, and `Unavailable`."""
    at = SYSTEM_CLOCK()
    name = named or f"{evaluation}-{datetime.fromtimestamp(at, UTC):%Y%m%d-%H%M%S}"
    shown = (ReportTable(tuple(head), tuple(map(tuple, rows))) for head, rows in tables)
    report = EvaluationReport(ReportHead(name, evaluation, file.name, version("memproxy"), at), tuple(shown))
    await FolderOfReports(settings.reports_path).keep(report)
    return name
