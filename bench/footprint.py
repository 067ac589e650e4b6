"""Measures how long each part takes to start, and the memory of all parts at rest.

`python bench/footprint.py [STARTS]`, by default 3, each with an empty data directory; the model is prepared before.
Memory is that of all processes of a part, supervisor included. "resident" counts pages that several parts share once
for each of them, "proportional" counts them once in total (`Rss` and `Pss` of /proc/PID/smaps_rollup).
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from chats import samples
from report import Bar, Report, Sheet, bench_parser
from rich.progress import Progress
from rig import command_line, descendants, part_of, running_upstream

from process_sizes import size_of  # isort: skip - on the path since `rig`
from product import Product  # isort: skip

BARS = (Bar("ready", "s", at_most=5.0), Bar("memory of all parts, proportional", "MB", at_most=900))
SETTLED_SECONDS = 5.0  # after it was ready: caches are as large as they get without a chat
START_METRIC = re.compile(r'memproxy_part_start_seconds\{part="([a-z]+)[-0-9]*"\}')


@dataclass
class Measured:
    """Seconds until each part worked and the product was ready; MB of each part."""

    ready: list[float] = field(default_factory=list)
    started: dict[str, list[float]] = field(default_factory=dict)
    resident: dict[str, list[float]] = field(default_factory=dict)
    proportional: dict[str, list[float]] = field(default_factory=dict)


def measure_start(upstream: str, folder: Path, measured: Measured, failures: Counter[str]) -> None:
    product = Product(folder / "data", upstream=upstream, is_timed=True)
    before = time.monotonic()
    product.start()
    try:
        measured.ready.append(time.monotonic() - before)
        time.sleep(SETTLED_SECONDS)
        page = asyncio.run(samples(product.ports["metrics"], failures)) or {}
        for name, seconds in page.items():
            if found := START_METRIC.match(name):
                measured.started.setdefault(found[1], []).append(seconds)
        assert product.process is not None
        resident, proportional = memory_of([product.process.pid, *descendants(product.process.pid)])
        for held, sizes in ((measured.resident, resident), (measured.proportional, proportional)):
            for part, size in sizes.items():
                held.setdefault(part, []).append(size)
    finally:
        product.stop()


def memory_of(pids: list[int]) -> tuple[Counter[str], Counter[str]]:
    """Resident and proportional MB by part."""
    resident, proportional = Counter[str](), Counter[str]()
    for pid in pids:
        if (size := size_of(pid)) is not None:
            part = part_of(command_line(pid))
            resident[part] += size.resident
            proportional[part] += size.proportional
    return resident, proportional


def rows(measured: Measured) -> list[tuple[object, ...]]:
    """Medians by part, and their sums."""
    parts = sorted(measured.resident, key=lambda part: -median(measured.resident[part]))
    listed: list[tuple[object, ...]] = [
        (part, middle(measured.started.get(part)), median(measured.resident[part]), median(measured.proportional[part]))
        for part in parts
    ]
    resident, proportional = (
        sum(median(sizes) for sizes in held.values()) for held in (measured.resident, measured.proportional)
    )
    return [*listed, ("all", median(measured.ready), resident, proportional)]


def middle(values: list[float] | None) -> float:
    return median(values) if values else math.nan


def main() -> int:
    parser = bench_parser("footprint", __doc__)
    parser.add_argument("starts", nargs="?", type=int, default=3)
    options = parser.parse_args()
    report, measured = Report("footprint", BARS, options.json), Measured()
    with running_upstream() as upstream, Progress(transient=True, disable=not os.isatty(2)) as progress:
        for _ in progress.track(range(options.starts), description="starts"):
            with tempfile.TemporaryDirectory() as folder:
                measure_start(upstream, Path(folder), measured, report.failures)
    table = rows(measured)
    sheet = Sheet("", ("part", "works after, s", "resident, MB", "proportional, MB"), table)
    figures = {"ready": float(str(table[-1][1])), "memory of all parts, proportional": float(str(table[-1][3]))}
    result = {"ready_seconds": measured.ready, "started_seconds": measured.started, "resident_mb": measured.resident}
    return report.finish({**result, "proportional_mb": measured.proportional}, [sheet], figures)


if __name__ == "__main__":
    sys.exit(main())
