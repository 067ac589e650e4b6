"""How much memory and how many file descriptors a process has, from /proc."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

KIND_OF_SIZE = re.compile(r"^(Rss|Pss): +(\d+) kB", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProcessSize:
    """`resident`, `proportional`: MB, where pages that processes share count for each, or once in total."""

    resident: float
    proportional: float
    descriptors: int


def size_of(pid: int) -> ProcessSize | None:
    """None: it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        descriptors = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return None
    kilobytes = {name: int(size) for name, size in KIND_OF_SIZE.findall(text)}
    if not kilobytes:  # it is ending
        return None
    return ProcessSize(kilobytes["Rss"] / 1024, kilobytes["Pss"] / 1024, descriptors)


def proportional_mb(pids: Iterable[int]) -> float:
    """Of all of them that are running."""
    return sum(size.proportional for pid in pids if (size := size_of(pid)) is not None)
