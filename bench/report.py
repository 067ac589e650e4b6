"""The report of every bench: tables, a JSON file, its bars with met or missed, and the machine.

A bar is declared with a name, a limit and a unit. A figure that could not be measured (NaN) misses its bar; bars of
scenarios that were not run are left out and counted. Failed calls are shown, and do not end a bench.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).resolve().parent / "results"
NOT_A_TERMINAL_COLUMNS = 150  # a table in a log is read as it was meant, not broken at 80 columns
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Bar:
    """What one figure may be at most, or has to be at least; exactly one of the two is finite."""

    name: str
    unit: str = ""
    at_most: float = math.inf
    at_least: float = -math.inf

    def __post_init__(self) -> None:
        assert math.isfinite(self.at_most) != math.isfinite(self.at_least), self.name

    def is_met(self, value: float) -> bool:
        return self.at_least <= value <= self.at_most

    @property
    def limit(self) -> str:
        words = f"at most {self.at_most:g}" if math.isfinite(self.at_most) else f"at least {self.at_least:g}"
        return f"{words} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Verdict:
    bar: Bar
    value: float

    @property
    def is_met(self) -> bool:
        return self.bar.is_met(self.value)

    def as_json(self) -> dict[str, object]:
        return {"name": self.bar.name, "limit": self.bar.limit, "value": self.value, "is_met": self.is_met}


def judged(bars: Sequence[Bar], figures: Mapping[str, float]) -> list[Verdict]:
    """A verdict for each bar whose figure was to be measured. A figure that no bar knows is a mistake of the bench."""
    unknown = figures.keys() - {bar.name for bar in bars}
    assert not unknown, f"no bar is called {unknown}"
    return [Verdict(bar, figures[bar.name]) for bar in bars if bar.name in figures]


@dataclass(frozen=True, slots=True)
class Sheet:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class Machine:
    """`load_at_start`: processes that wanted a core, mean of the last minute; near 0, or others are being measured."""

    cores: int
    python: str
    system: str
    load_at_start: float


def this_machine() -> Machine:
    cores = len(os.sched_getaffinity(0))
    return Machine(cores, platform.python_version(), platform.platform(), round(os.getloadavg()[0], 2))


def bench_parser(name: str, doc: str | None) -> argparse.ArgumentParser:
    """With what all benches take: `--json FILE`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = RESULTS / f"{name}.json"
    parser.add_argument("--json", type=Path, default=target, metavar="FILE", help=f"default: bench/results/{name}.json")
    return parser


class Report:
    """One run of one bench. Make it before anything is started: it takes the machine's load."""

    def __init__(self, name: str, bars: Sequence[Bar], target: Path) -> None:
        self.failures: Counter[str] = Counter()
        self._name, self._bars, self._target = name, bars, target
        self._machine = this_machine()

    def finish(self, result: Mapping[str, object], sheets: Sequence[Sheet], figures: Mapping[str, float]) -> int:
        """Print and write everything; the exit code, 1 where a bar is missed."""
        verdicts = judged(self._bars, figures)
        everything = {
            "bench": self._name,
            "machine": {name: getattr(self._machine, name) for name in Machine.__slots__},
            "bars": [verdict.as_json() for verdict in verdicts],
            "failed_calls": dict(self.failures),
            **result,
        }
        self._target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(without_nan(everything), indent=2, ensure_ascii=False, allow_nan=False)
        self._target.write_text(text + "\n", encoding="utf-8")
        self._print(sheets, verdicts)
        return 0 if all(verdict.is_met for verdict in verdicts) else 1

    def _print(self, sheets: Sequence[Sheet], verdicts: Sequence[Verdict]) -> None:
        console = Console(width=None if sys.stdout.isatty() else NOT_A_TERMINAL_COLUMNS)
        for sheet in sheets:
            console.print(table_of(sheet))
        if verdicts:
            console.print(table_of(Sheet("bars", ("", "figure", "is", "limit"), [row_of(one) for one in verdicts])))
        if left_out := len(self._bars) - len(verdicts):
            console.print(f"{left_out} of {len(self._bars)} bars were not asked for")
        failed = ", ".join(f"{count} x {why}" for why, count in self.failures.most_common()) or "none"
        one = self._machine
        console.print(f"failed calls: {failed}; {one.cores} cores, Python {one.python}, load {one.load_at_start}")
        console.print(f"written to {self._target}", soft_wrap=True)
        if missed := [one.bar.name for one in verdicts if not one.is_met]:
            console.print(f"missed: {'; '.join(missed)}", soft_wrap=True)


def row_of(verdict: Verdict) -> tuple[object, ...]:
    return "met" if verdict.is_met else "MISSED", verdict.bar.name, verdict.value, verdict.bar.limit


def table_of(sheet: Sheet) -> Table:
    table = Table(*sheet.columns, title=sheet.title, title_justify="left")
    for row in sheet.rows:
        table.add_row(*map(cell, row))
    return table


def cell(value: object) -> str:
    """A number with four digits that matter; "–" for what could not be measured."""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "–"
    digits = 0 if abs(value) >= 1_000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3
    return f"{value:,.{digits}f}"


def without_nan(value: object) -> object:
    """JSON knows no NaN: null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return value


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99 by nearest rank, to three digits; NaN of nothing."""
    ordered = sorted(values)
    return {f"p{p}": round(nearest_rank(ordered, p / 100), 3) for p in PERCENTILES}


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)] if ordered else math.nan


def added(ours: Mapping[str, float], bare: Mapping[str, float]) -> dict[str, float]:
    """What each percentile has more than a bare Envoy's."""
    return {p: round(ours[p] - bare[p], 3) for p in ours}


def ratio(value: float, of: float) -> float:
    """NaN of nothing."""
    return value / of if of else math.nan
