"""`auto_store: false`, by a request or by the settings, leaves nothing that was said: receipts hold ids and scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from recall_rig import SETTINGS, request_of, rigged

from memory.model import RecallStatus, Scope

ASKED = "Where is my kayak? The gate code is Zephyr."


@pytest.mark.parametrize("by_settings", [False, True])
async def test_what_is_not_to_be_stored_leaves_no_words(tmp_path: Path, *, by_settings: bool) -> None:
    settings = replace(SETTINGS, deadline_seconds=30.0, keeps_words=not by_settings)
    async with rigged(tmp_path, settings) as rig:
        config = {} if by_settings else {"auto_store": False}
        outcome = await rig.recall.recall(Scope("u"), request_of(ASKED, **config))
        receipt = await rig.receipt(outcome)
    assert (outcome.status, receipt.query) == (RecallStatus.USED, "")
    assert receipt.candidates[0].memory_id == "m1"
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"m1" in written
    assert b"Zephyr" not in written


async def test_elsewhere_a_receipt_says_what_was_asked(tmp_path: Path) -> None:
    async with rigged(tmp_path, replace(SETTINGS, deadline_seconds=30.0)) as rig:
        receipt = await rig.receipt(await rig.recall.recall(Scope("u"), request_of(ASKED)))
    assert "kayak" in receipt.query
