"""A place to learn in, per test, and a process of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from learning_parts import Bench
from turn_logs import Process, sqlite_deployment


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(sqlite_deployment(tmp_path))


@pytest.fixture
async def process(bench: Bench) -> AsyncIterator[Process]:
    async with bench.deployment.start() as running:
        yield running
