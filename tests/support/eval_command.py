"""`memproxy eval …` as people run it: a process of its own, in a folder of the test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SECONDS_MAX = 120.0  # loading models on busy cores is the longest part


def evaluated(folder: Path, *arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """The command in that folder, with these settings in its environment."""
    return subprocess.run(
        [sys.executable, "-m", "extproc", "eval", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env={**os.environ, **settings},  # noqa: TID251 - the command's, not ours
    )
