"""The record is kept as long as the setting says, and what is not learnt yet longer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from recorded import added, learn_all, texts
from turn_logs import START, sqlite_deployment, tell

from memory.errors import Unavailable
from memory.sessions.record_expiry import EXPIRED_AT_ONCE, RecordExpiry

DAY = 86_400.0


async def test_what_is_older_goes_in_batches_and_the_rest_stays(tmp_path: Path) -> None:
    deployment = sqlite_deployment(tmp_path)
    async with deployment.start() as process:
        log = process.log
        await log.messages.add("ann", [added(f"m{n}") for n in range(2 * EXPIRED_AT_ONCE + 1)])
        await tell(log, "learnt")
        await learn_all(log)
        await tell(log, "waits")
        expiry = RecordExpiry(log.messages, clock=deployment.clock, keep_seconds=DAY)
        assert await expiry.expire() == 0
        deployment.clock.now = START + DAY + 1
        await log.messages.add("ann", [added("fresh")])
        assert await expiry.expire() == 2 * EXPIRED_AT_ONCE + 2
        assert sorted(await texts(log)) == ["answer to waits", "text of fresh", "words of waits"]


async def test_it_goes_on_after_an_outage_until_told_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = sqlite_deployment(tmp_path)
    async with deployment.start() as process:
        record = process.log.messages
        await record.add("ann", [added("m1")])
        deployment.clock.now = START + DAY + 1
        real, calls = record.expire, 0

        async def failing_once(*, before: float, limit: int) -> int:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise Unavailable("turn_log", "the disk is full")
            return await real(before=before, limit=limit)

        monkeypatch.setattr(record, "expire", failing_once)
        until = asyncio.Event()
        expiry = RecordExpiry(record, clock=deployment.clock, keep_seconds=DAY, look=0.01)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(expiry.run(until))
            while await texts(process.log):
                await asyncio.sleep(0.005)
            until.set()
