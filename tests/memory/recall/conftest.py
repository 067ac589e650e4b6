"""Builders for memories with vectors that a test can choose; and requests in the form of each API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import recall_rig
from api_shapes import ASKED_COMPLETIONS, SHAPES, AskedShape
from memory_rows import memory
from recall_rig import PATIENCE_SECONDS, Rig, rigged

from memory.adapters.sql import receipts
from memory.model import Record, Vector
from memory.recall import pipeline, review

NOW = 1_765_800_000.0  # 15 December 2025, noon UTC
DAY = 86_400.0
DIMENSION = 8


Remember = Callable[..., Record]


@pytest.fixture
def remember() -> Remember:
    """`remember("text", days_ago=2, session_id="a", ...)`; each has its own id."""
    count = 0

    def build(content: str, *, vector: Vector | None = None, days_ago: float = 30.0, **fields: object) -> Record:
        nonlocal count
        count += 1
        said = memory(f"m{count:03d}", content, user_id="u", at=NOW - days_ago * DAY)
        return Record(replace(said, **fields), np.eye(DIMENSION, dtype=np.float32)[0] if vector is None else vector)  # type: ignore[arg-type]

    return build


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What builds its requests with the rig runs once for each API."""
    named = vars(metafunc.module)
    if any(named.get(one.__name__) is one for one in (recall_rig.request_of, recall_rig.request_with)):
        metafunc.parametrize("asked_shape", SHAPES, ids=lambda shape: shape.name, indirect=True)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """With the usual settings; modules with others have one of their own."""
    async with rigged(tmp_path) as running:
        yield running


@pytest.fixture(autouse=True)
def asked_shape(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AskedShape:
    """The API in whose form the rig's requests come. What recall waits for, it waits for on a busy machine too."""
    shape: AskedShape = getattr(request, "param", ASKED_COMPLETIONS)
    monkeypatch.setattr(recall_rig, "SHAPE", shape)
    for limit in ("KEEP_SECONDS_MAX", "HISTORY_SECONDS_MAX"):
        monkeypatch.setattr(pipeline, limit, PATIENCE_SECONDS)
    monkeypatch.setattr(receipts, "IN_PASSING_SECONDS", 0.0)
    monkeypatch.setattr(review, "READ_SECONDS_MAX", PATIENCE_SECONDS)
    return shape
