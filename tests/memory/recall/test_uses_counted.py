"""Which uses of a memory count: those in a new note, once, and never at the cost of the request."""

from __future__ import annotations

import asyncio
from pathlib import Path

from recall_rig import request_of, request_with, rigged

from memory.model import RecallStatus, Scope

QUESTION = "Tell me, where is my kayak stored now?"  # not what the rig warms up with: that note would be put back


async def test_a_new_note_counts_and_one_that_is_put_back_does_not(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        await asyncio.sleep(0.2)
        before = (await rig.usage_counts.unstored("u", limit=10))["m1"].counted
        outcome = await rig.recall.recall(Scope("u"), request_of(QUESTION))
        assert outcome.status is RecallStatus.USED
        later = [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "In the shed."},
            {"role": "user", "content": "Thanks!"},
        ]
        put_back = await rig.recall.recall(Scope("u"), request_with(later))
        assert (put_back.status, put_back.reason) == (RecallStatus.USED, "put_back")
        await asyncio.sleep(0.2)
        assert (await rig.usage_counts.unstored("u", limit=10))["m1"].counted == before + 1


async def test_a_request_without_a_note_counts_nothing(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        await asyncio.sleep(0.2)
        before = await rig.usage_counts.unstored("u", limit=10)
        await rig.recall.recall(Scope("u"), request_of("Hello!"))
        await rig.recall.recall(Scope("u"), request_of(QUESTION, placement="off"))
        await asyncio.sleep(0.2)
        assert await rig.usage_counts.unstored("u", limit=10) == before
