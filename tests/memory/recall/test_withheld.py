"""Notes that do not go along: of users who opted out or may have, in shadow mode, of conversations held out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from recall_rig import KAYAK, NOW, PATIENCE_SECONDS, SETTINGS, Rig, request_of, request_with

from memory.adapters.sql.chat_states import SqlChatStates
from memory.adapters.sql.notes import NOTE_DROP_SECONDS
from memory.errors import Unavailable
from memory.model import CandidateVerdict, Memory, RecallStatus, Scope
from memory.model.arms import HoldoutRule
from memory.ports import ChatState, ChatStateQuery
from memory.recall import review
from memory.recall.project_access import ReadableProjects
from memory.recall.review import StateReader
from memory.recall.withholding import unit_of

QUESTION = "Tell me, where is my kayak stored now?"
NOBODYS = ReadableProjects(None)  # type: ignore[arg-type]  # no scope here names a project
SHADOW = replace(SETTINGS, is_shadow=True)
ALL_HELD_OUT = replace(SETTINGS, holdout=HoldoutRule(1.0))
NONE_HELD_OUT = replace(SETTINGS, holdout=HoldoutRule(1e-9))
LATER = [
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "content": "I do not know."},
    {"role": "user", "content": "Where is my kayak stored, in Dorset?"},
]


def verdicts(receipt: Any) -> dict[str, CandidateVerdict]:
    return {candidate.memory_id: candidate.verdict for candidate in receipt.candidates}


class Answers:
    """`ChatStates` that answers as a test decides; counts the calls."""

    def __init__(self, answer: Callable[[int], Awaitable[ChatState]]) -> None:
        self._answer = answer
        self.calls = 0

    async def read(self, _: ChatStateQuery) -> ChatState:
        self.calls += 1
        return await self._answer(self.calls)

    def last_known(self, _: ChatStateQuery) -> None:
        """Nobody was seen before."""

    async def follow_withdrawals(self) -> None:
        return None


async def test_an_opted_out_user_gets_no_note_until_they_opt_in(rig: Rig) -> None:
    assert (await rig.recall.recall(Scope("u"), request_of(QUESTION))).status is RecallStatus.USED
    await rig.opt_outs.set("u", at=NOW)
    rig.embedder.texts.clear()
    outcome = await rig.recall.recall(Scope("u"), request_of(QUESTION))
    assert (outcome.status, outcome.reason, outcome.notes) == (RecallStatus.DISABLED, "opted_out", ())
    assert (outcome.receipt_id, rig.embedder.calls) == ("", 0)
    assert rig.counted("memproxy_requests_total", status="disabled", reason="opted_out") == 1.0
    await rig.opt_outs.clear("u")
    assert (await rig.recall.recall(Scope("u"), request_of(QUESTION))).status is RecallStatus.USED


async def down(_: int) -> ChatState:
    raise Unavailable("turn_log", "it is down")


async def hanging(_: int) -> ChatState:
    await asyncio.Event().wait()
    return ChatState()


async def restarting(calls: int) -> ChatState:
    return await down(calls) if calls < 4 else ChatState()


async def at_once(_: int) -> ChatState:
    return ChatState()


@pytest.mark.parametrize("answer", [down, hanging])
async def test_whoever_is_new_gets_no_note_in_doubt_and_one_waits(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    states, calls = Answers(answer), []
    monkeypatch.setattr(review, "READ_SECONDS_MAX", 0.05)
    monkeypatch.setattr(rig.recall, "_stored", StateReader(states, NOBODYS))
    for _ in range(3):
        outcome = await rig.recall.recall(Scope("u"), request_of(QUESTION))
        assert (outcome.status, outcome.reason) == (RecallStatus.UNAVAILABLE, "opt_out_unknown")
        assert outcome.notes == ()
        calls.append(states.calls)
    assert (calls[1] - calls[0], calls[2] - calls[1]) == (1, 1)


@pytest.mark.parametrize("failing", [down, hanging])
async def test_while_the_log_is_down_users_seen_before_get_notes_unless_they_had_opted_out(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, failing: Any
) -> None:
    states = rig.chat_states
    assert isinstance(states, SqlChatStates)
    await rig.opt_outs.set("out", at=NOW - NOTE_DROP_SECONDS)
    await states.forget_withdrawn()
    for user in ("u", "out"):
        await rig.recall.recall(Scope(user), request_of(QUESTION))
    monkeypatch.setattr(review, "READ_SECONDS_MAX", 0.05)
    for name in ("read", "read_now"):
        monkeypatch.setattr(states.database, name, failing)
    for user, status, reason in (
        ("u", RecallStatus.USED, "found"),
        ("out", RecallStatus.DISABLED, "opted_out"),
        ("new", RecallStatus.UNAVAILABLE, "opt_out_unknown"),
    ):
        outcome = await rig.recall.recall(Scope(user), request_of(QUESTION))
        assert (outcome.status, outcome.reason) == (status, reason)
        assert [KAYAK in note.text for note in outcome.notes] == [True] * (user == "u")
    for messages in (LATER, LATER[:1]):  # a conversation with an earlier note, and one of its own
        assert (await rig.recall.recall(Scope("u"), request_with(messages))).status is RecallStatus.USED


@pytest.mark.parametrize("answer", [at_once, restarting])
async def test_waiting_for_a_server_that_returns_costs_no_deadline(
    monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    monkeypatch.setattr(review, "RETURN_SECONDS_MAX", PATIENCE_SECONDS)
    stored = await StateReader(Answers(answer), NOBODYS).read(ChatStateQuery("u"))
    assert stored.state == ChatState()
    assert (stored.waited > 0) is (answer is restarting)


async def test_in_shadow_mode_recall_runs_fully_and_adds_nothing_nor_puts_back_what_was_added(rig: Rig) -> None:
    assert (await rig.recall.recall(Scope("u"), request_of(QUESTION))).notes
    tokens, before = rig.counted("memproxy_note_tokens_count"), await rig.uses()
    rig.recall._settings = SHADOW
    outcome = await rig.recall.recall(Scope("u"), request_of("So where is my kayak stored?"))
    assert (outcome.status, outcome.reason, outcome.count) == (RecallStatus.DISABLED, "shadow", 0)
    assert (outcome.notes, outcome.note_keys, outcome.compacted) == ((), (), None)
    receipt = await rig.receipt(outcome)
    assert verdicts(receipt)["m1"] is CandidateVerdict.WITHHELD
    assert (receipt.status, receipt.reason, receipt.notes) == (RecallStatus.DISABLED, "shadow", ())
    assert receipt.signals["withheld"] == "shadow"
    assert receipt.signals["note_tokens"] > 0
    assert "arm" not in receipt.signals
    assert {"embed", "all"} & receipt.timings_ms.keys()
    assert await rig.uses() == before
    assert rig.counted("memproxy_note_tokens_count") == tokens
    assert (await rig.recall.recall(Scope("u"), request_with(LATER))).notes == ()
    assert (await rig.recall.recall(Scope("nobody"), request_of(QUESTION))).status is RecallStatus.EMPTY
    assert (await rig.recall.recall(Scope("u"), request_of("Hello!"))).status is RecallStatus.SKIPPED


async def test_a_held_out_question_gets_no_note_and_one_of_the_other_arm_does_as_receipts_say(rig: Rig) -> None:
    rig.recall._settings = ALL_HELD_OUT
    outcome = await rig.recall.recall(Scope("u", session_id="s"), request_of(QUESTION))
    assert (outcome.status, outcome.reason) == (RecallStatus.SKIPPED, "held_out")
    assert (outcome.notes, outcome.count) == ((), 0)
    receipt = await rig.receipt(outcome)
    assert (receipt.signals["arm"], receipt.signals["withheld"]) == ("held_out", "held_out")
    assert verdicts(receipt)["m1"] is CandidateVerdict.WITHHELD
    assert rig.counted("memproxy_holdout_questions_total", arm="held_out") == 1
    again = await rig.recall.recall(Scope("u", session_id="s"), request_with(LATER))
    assert (again.notes, again.reason) == ((), "held_out")

    rig.recall._settings, before = NONE_HELD_OUT, rig.counted("memproxy_holdout_questions_total", arm="noted")
    outcome = await rig.recall.recall(Scope("u", session_id="s"), request_of(QUESTION))
    assert outcome.status is RecallStatus.USED
    assert KAYAK in outcome.notes[0].text
    receipt = await rig.receipt(outcome)
    assert (receipt.signals["arm"], "withheld" in receipt.signals) == ("noted", False)
    assert receipt.signals["note_tokens"] == receipt.notes[0].tokens
    assert rig.counted("memproxy_holdout_questions_total", arm="noted") == before + 1


@pytest.mark.parametrize(("settings", "user"), [(NONE_HELD_OUT, "nobody"), (SETTINGS, "u")])
async def test_without_a_note_or_a_holdout_there_is_no_arm(rig: Rig, settings: Any, user: str) -> None:
    rig.recall._settings = settings
    outcome = await rig.recall.recall(Scope(user), request_of(QUESTION))
    assert (outcome.status is RecallStatus.EMPTY) == (user == "nobody")
    assert "arm" not in (await rig.receipt(outcome, user_id=user)).signals


async def test_a_conversation_that_carries_notes_keeps_them_and_gets_more_whatever_is_held_out(rig: Rig) -> None:
    first = await rig.recall.recall(Scope("u"), request_of(QUESTION))
    await rig.write(Memory("m2", "u", "My tent is kept in the attic in Leeds", NOW, NOW, NOW))
    rig.recall._settings = ALL_HELD_OUT
    messages = [*LATER[:2], {"role": "user", "content": "Where is my tent kept?"}]
    for sent, reason in ((LATER, "put_back"), (messages, "found")):
        later = await rig.recall.recall(Scope("u"), request_with(sent))
        assert (later.status, later.reason, later.notes[0]) == (RecallStatus.USED, reason, first.notes[0])
        assert ("attic" in later.notes[-1].text) == (reason == "found")
        assert "arm" not in (await rig.receipt(later)).signals


def test_a_conversation_is_one_unit_from_its_first_request_to_its_last() -> None:
    first, later = request_of(QUESTION), request_with([{"role": "system", "content": "It is noon."}, *LATER])
    for scope in (Scope("u"), Scope("u", session_id="s"), Scope("u", "p", agent_id="a")):
        assert unit_of(scope, first) == unit_of(scope, later)
    others = [Scope("u"), Scope("v"), Scope("u", "p"), Scope("u", "q"), *(Scope("u", session_id=one) for one in "st")]
    assert len({unit_of(scope, first) for scope in others}) == len(others)
