"""What a check of the installation finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"  # works, with limitations
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `advice`: what to do, "" if nothing is wrong."""

    check: str
    level: Level
    says: str
    advice: str = ""
