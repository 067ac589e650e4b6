"""The record is kept as long as the setting says, and what is not learnt yet longer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from disturbed_calls import down
from recorded import added, learn_all, texts
from turn_logs import sqlite_deployment, tell

from memory.sessions.record_expiry import EXPIRED_AT_ONCE, delete_expired

DAY = 86_400.0


async def test_what_is_older_goes_in_batches_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = sqlite_deployment(tmp_path)
    async with deployment.start() as process:
        log = process.log
        await log.messages.add("ann", [added(f"m{n}") for n in range(2 * EXPIRED_AT_ONCE + 1)])
        await tell(log, "learnt")
        await learn_all(log)
        await tell(log, "waits")
        expire = partial(delete_expired, log.messages, clock=deployment.clock, keep_seconds=DAY)
        deployment.clock.now += DAY
        await log.messages.add("ann", [added("fresh")])
        assert await expire() == 0
        deployment.clock.now += 1
        with monkeypatch.context() as outage:
            outage.setattr(log.messages, "expire", down)
            assert await expire() == 0
        assert await expire() == 2 * EXPIRED_AT_ONCE + 2
        assert sorted(await texts(log)) == ["answer to waits", "text of fresh", "words of waits"]
