"""A place to learn in, per test."""

from __future__ import annotations

from pathlib import Path

import pytest
from learning_parts import Bench
from turn_logs import sqlite_deployment


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(sqlite_deployment(tmp_path))
