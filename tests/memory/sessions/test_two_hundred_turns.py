"""A chat of two hundred turns, through recall, learning and compaction with the packaged models.

`bench/compaction.py` shows these figures, also for a second chat.
"""

from __future__ import annotations

import pytest
from compacted_chat import long_chat_rig, measured
from long_chats import FIRST
from own_embedder import own_embedder

from memory.settings.loader import from_process


@pytest.mark.full("two hundred turns are recalled, learnt and compacted one by one")
async def test_two_hundred_turns_take_a_thousand_tokens_and_every_planted_item_is_answerable() -> None:
    async with own_embedder() as embedder, long_chat_rig(from_process(None, {}), embedder) as rig:
        found = await measured(rig, FIRST)
    assert found.full_tokens > 20_000
    assert max(found.tokens_of_questions) <= 1_000
    assert found.missing == []
    assert found.in_state >= found.planted // 2
    assert found.moves >= 5, "the cut did move while the ratio was measured"
    assert found.ratio >= 0.9
