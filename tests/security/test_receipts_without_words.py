"""`auto_store: false`, by a request or by the settings, leaves nothing that was said: receipts hold ids and scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from recall_rig import SETTINGS, request_of, rigged

from memory.model import RecallStatus, Scope

ASKED = "Where is my kayak? The gate code is Zephyr."


@pytest.mark.parametrize(
    ("keeps_words", "config", "has_words"), [(True, {"auto_store": False}, False), (False, {}, False), (True, {}, True)]
)
async def test_what_is_not_to_be_stored_leaves_no_words(
    tmp_path: Path, keeps_words: bool, config: dict[str, bool], has_words: bool
) -> None:
    async with rigged(tmp_path, replace(SETTINGS, deadline_seconds=30.0, keeps_words=keeps_words)) as rig:
        outcome = await rig.recall.recall(Scope("u"), request_of(ASKED, **config))
        receipt = await rig.receipt(outcome)
    assert outcome.status is RecallStatus.USED
    assert ("kayak" in receipt.query, receipt.query == "") == (has_words, not has_words)
    assert receipt.candidates[0].memory_id == "m1"
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"m1" in written
    assert (b"Zephyr" in written) <= has_words
