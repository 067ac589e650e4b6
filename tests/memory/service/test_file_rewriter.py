"""Files are rewritten after erasures, all parts or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from turn_logs import ManualClock

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.erasures import SqliteErasures
from memory.errors import Unavailable
from memory.ports.erasures import ErasureRequest
from memory.runtime.metrics import Metrics
from memory.service.user_erasures import FileRewriter

USER = "ann-7f3a"


class CountedStore:
    """A store whose rows would all be copied."""

    def __init__(self) -> None:
        self.rewritings = 0

    async def refuse_in_vain(self) -> None: ...

    async def rewrite(self) -> None:
        self.rewritings += 1


@pytest.mark.parametrize(("bytes_max", "rewritings"), [(1_000, 0), (1 << 30, 1)])
async def test_the_store_is_not_copied_again_and_again_for_a_turn_log_that_is_too_large(
    tmp_path: Path, bytes_max: int, rewritings: int
) -> None:
    store, clock = CountedStore(), ManualClock()
    async with SqliteDatabase(tmp_path / "turns.sqlite", rewrite_bytes_max=bytes_max) as database:
        erasures = SqliteErasures(database)
        rewriter = FileRewriter(erasures, [store, database], clock=clock, metrics=Metrics(CollectorRegistry()))
        await rewriter.run_once()
        assert store.rewritings == 0  # nobody waits
        await erasures.begun(USER, ErasureRequest("e1", clock(), clock(), {}))
        if not rewritings:
            with pytest.raises(Unavailable, match="memproxy compact"):
                await rewriter.run_once()
        else:
            await rewriter.run_once()
        assert store.rewritings == rewritings
        found = await erasures.get(USER, "e1")
        assert found is not None
        assert (found.rewritten_at is not None) == bool(rewritings)
