"""Notes that were found and do not go along: in shadow mode, and in conversations that are held out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recall_rig import KAYAK, NOW, SETTINGS, Rig, request_of, request_with, rigged

from memory.model import CandidateVerdict, Memory, Placement, RecallStatus, Scope
from memory.model.arms import HoldoutRule
from memory.recall.withholding import unit_of

QUESTION = "Tell me, where is my kayak stored now?"
SHADOW = replace(SETTINGS, is_shadow=True)
ALL_HELD_OUT = replace(SETTINGS, holdout=HoldoutRule(1.0))
NONE_HELD_OUT = replace(SETTINGS, holdout=HoldoutRule(1e-9))
LATER = [
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "content": "I do not know."},
    {"role": "user", "content": "Where is my kayak stored, in Dorset?"},
]


def counted(rig: Rig, name: str, **labels: str) -> float:
    return rig.metrics.registry.get_sample_value(name, labels) or 0.0


def verdicts(receipt: Any) -> dict[str, CandidateVerdict]:
    return {candidate.memory_id: candidate.verdict for candidate in receipt.candidates}


async def test_in_shadow_mode_recall_runs_fully_and_adds_nothing(tmp_path: Path) -> None:
    async with rigged(tmp_path, SHADOW) as rig:
        before = await rig.usage_counts.unstored("u", limit=10)
        outcome = await rig.recall.recall(Scope("u"), request_of(QUESTION))
        assert (outcome.status, outcome.reason, outcome.count) == (RecallStatus.DISABLED, "shadow", 0)
        assert (outcome.notes, outcome.note_keys, outcome.compacted, outcome.resent) == ((), (), None, None)
        receipt = await rig.receipt(outcome)
        assert verdicts(receipt)["m1"] is CandidateVerdict.WITHHELD
        assert (receipt.status, receipt.reason, receipt.notes) == (RecallStatus.DISABLED, "shadow", ())
        assert receipt.signals["withheld"] == "shadow"
        assert receipt.signals["note_tokens"] > 0
        assert "arm" not in receipt.signals
        assert {"embed", "all"} & receipt.timings_ms.keys()
        assert await rig.usage_counts.unstored("u", limit=10) == before
        assert counted(rig, "memproxy_note_tokens_count") == 0


async def test_in_shadow_mode_no_later_request_carries_a_note_either(tmp_path: Path) -> None:
    async with rigged(tmp_path, SHADOW) as rig:
        await rig.recall.recall(Scope("u"), request_of(QUESTION))
        outcome = await rig.recall.recall(Scope("u"), request_with(LATER))
        assert outcome.notes == ()


async def test_in_shadow_mode_a_search_without_a_result_is_told_as_ever(tmp_path: Path) -> None:
    async with rigged(tmp_path, SHADOW) as rig:
        outcome = await rig.recall.recall(Scope("nobody"), request_of(QUESTION))
        assert outcome.status is RecallStatus.EMPTY
        assert (await rig.recall.recall(Scope("u"), request_of("Hello!"))).status is RecallStatus.SKIPPED


async def test_notes_of_before_are_not_put_back_in_shadow_mode(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        await rig.recall.recall(Scope("u"), request_of(QUESTION))
        rig.recall._settings = SHADOW
        outcome = await rig.recall.recall(Scope("u"), request_with(LATER))
        assert outcome.notes == ()


async def test_a_held_out_question_gets_no_note_and_its_receipt_says_which_it_would_have_been(tmp_path: Path) -> None:
    async with rigged(tmp_path, NONE_HELD_OUT) as rig:
        rig.recall._settings = ALL_HELD_OUT
        outcome = await rig.recall.recall(Scope("u", session_id="s"), request_of(QUESTION))
        assert (outcome.status, outcome.reason) == (RecallStatus.SKIPPED, "held_out")
        assert (outcome.notes, outcome.count) == ((), 0)
        receipt = await rig.receipt(outcome)
        assert (receipt.signals["arm"], receipt.signals["withheld"]) == ("held_out", "held_out")
        assert verdicts(receipt)["m1"] is CandidateVerdict.WITHHELD
        assert counted(rig, "memproxy_holdout_questions_total", arm="held_out") == 1
        again = await rig.recall.recall(Scope("u", session_id="s"), request_with(LATER))
        assert (again.notes, again.reason) == ((), "held_out")


async def test_a_question_of_the_other_arm_gets_its_note_and_is_marked(tmp_path: Path) -> None:
    async with rigged(tmp_path, NONE_HELD_OUT) as rig:
        before = counted(rig, "memproxy_holdout_questions_total", arm="noted")
        outcome = await rig.recall.recall(Scope("u", session_id="s"), request_of(QUESTION))
        assert outcome.status is RecallStatus.USED
        assert KAYAK in outcome.notes[0].text
        receipt = await rig.receipt(outcome)
        assert receipt.signals["arm"] == "noted"
        assert "withheld" not in receipt.signals
        assert receipt.signals["note_tokens"] == receipt.notes[0].tokens
        assert counted(rig, "memproxy_holdout_questions_total", arm="noted") == before + 1


async def test_where_no_note_was_found_there_is_no_arm(tmp_path: Path) -> None:
    async with rigged(tmp_path, NONE_HELD_OUT) as rig:
        outcome = await rig.recall.recall(Scope("nobody"), request_of(QUESTION))
        assert outcome.status is RecallStatus.EMPTY
        assert "arm" not in (await rig.receipt(outcome, user_id="nobody")).signals


async def test_without_a_share_nothing_is_marked(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        outcome = await rig.recall.recall(Scope("u"), request_of(QUESTION))
        assert "arm" not in (await rig.receipt(outcome)).signals
        for arm in ("noted", "held_out"):
            assert counted(rig, "memproxy_holdout_questions_total", arm=arm) == 0


async def test_a_conversation_that_carries_notes_keeps_them_whatever_is_held_out(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        first = await rig.recall.recall(Scope("u"), request_of(QUESTION))
        rig.recall._settings = ALL_HELD_OUT
        later = await rig.recall.recall(Scope("u"), request_with(LATER))
        assert (later.status, later.notes[0].text) == (RecallStatus.USED, first.notes[0].text)
        assert "arm" not in (await rig.receipt(later)).signals


async def test_nor_is_a_further_note_of_such_a_conversation_held_out(tmp_path: Path) -> None:
    async with rigged(tmp_path) as rig:
        await rig.recall.recall(Scope("u"), request_of(QUESTION))
        await rig.write(Memory("m2", "u", "My tent is kept in the attic in Leeds", NOW, NOW, NOW))
        rig.recall._settings = ALL_HELD_OUT
        messages = [*LATER[:2], {"role": "user", "content": "Where is my tent kept?"}]
        later = await rig.recall.recall(Scope("u"), request_with(messages))
        assert (later.status, later.reason) == (RecallStatus.USED, "found")
        assert "attic" in "".join(note.text for note in later.notes)
        assert "arm" not in (await rig.receipt(later)).signals


@pytest.mark.parametrize("settings", [SHADOW, ALL_HELD_OUT])
async def test_a_request_with_placement_off_is_told_so(tmp_path: Path, settings: Any) -> None:
    async with rigged(tmp_path, NONE_HELD_OUT) as rig:
        rig.recall._settings = settings
        outcome = await rig.recall.recall(Scope("u"), request_of(QUESTION, placement=Placement.OFF.value))
        assert (outcome.status, outcome.reason) == (RecallStatus.DISABLED, "placement_off")


def test_a_conversation_is_one_unit_from_its_first_request_to_its_last() -> None:
    first, later = request_of(QUESTION), request_with([{"role": "system", "content": "It is noon."}, *LATER])
    for scope in (Scope("u"), Scope("u", session_id="s"), Scope("u", "p", agent_id="a")):
        assert unit_of(scope, first) == unit_of(scope, later)
    assert unit_of(Scope("u", session_id="s"), first) != unit_of(Scope("u", session_id="t"), first)
    assert unit_of(Scope("u"), first) != unit_of(Scope("v"), first)
    assert unit_of(Scope("u", "p"), first) != unit_of(Scope("u", "q"), first)
