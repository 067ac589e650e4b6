"""Evaluation reports: the figures of one run of `memproxy eval`."""

from __future__ import annotations

from dataclasses import dataclass, field


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
