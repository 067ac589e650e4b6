"""Conversations that the server holds: what their notes said is not said again, and counts in the budget of all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_shapes import read_response as asked
from recall_rig import KAYAK, NOW, SETTINGS, Rig, rigged

from memory.model import Memory, Message, PastNote, Placement, RecallStatus, Scope, Turn, TurnStatus
from memory.model.conversation_trees import NOTE_KEYS_MAX, ChainLink, link_name
from memory.recall import admission
from memory.recall.notes.past_notes import CarriedNotes, carried_notes, note_keys
from memory.recall.pipeline import RecallOutcome

QUESTION = "Where is my kayak stored?"
USER = Scope("u")
IN_INSTRUCTIONS = {"memory_config": {"placement": "system"}}


async def begun(rig: Rig, **fields: Any) -> RecallOutcome:
    """The first question of the chain "resp_1", and what the observer keeps of its answer."""
    request = asked(QUESTION, **fields)
    outcome = await rig.recall.recall(USER, request)
    await rig.chains.keep("u", ("resp_1",), ChainLink("s", "t", tuple(note_keys(USER, request).values())), at=NOW)
    return outcome


async def test_what_a_note_in_the_server_s_part_says_is_not_said_again(rig: Rig) -> None:
    assert [(note.before, KAYAK in note.text) for note in (await begun(rig)).notes] == [(0, True)]
    later = asked("Where was my kayak stored again?", previous_response_id="resp_1")
    assert (await rig.recall.recall(USER, later)).notes == ()
    await rig.write(Memory("m2", "u", "My kayak paddle is stored in the red shed", NOW, NOW, NOW))
    news = await rig.recall.recall(USER, later)
    assert [(note.before, "red shed" in note.text, KAYAK in note.text) for note in news.notes] == [(0, True, False)]


async def test_another_conversation_and_another_user_s_are_told_again(rig: Rig) -> None:
    outcome = await rig.recall.recall(USER, asked(QUESTION))
    await rig.chains.keep("stranger", ("resp_9",), ChainLink("s", "t", outcome.note_keys), at=NOW)
    for fields in ({"previous_response_id": "resp_9"}, {"previous_response_id": "resp_8"}, {"conversation": "conv_1"}):
        outcome = await rig.recall.recall(USER, asked(QUESTION, **fields))
        assert [KAYAK in note.text for note in outcome.notes] == [True]


async def test_with_placement_system_a_chain_s_notes_are_put_back_for_instructions_do_not_carry_over(rig: Rig) -> None:
    first = await begun(rig, **IN_INSTRUCTIONS)
    output = {"type": "function_call_output", "call_id": "c", "output": "rain"}
    for later in ("Thanks!", "Where was my kayak stored again?", [output]):
        again = await rig.recall.recall(USER, asked(later, previous_response_id="resp_1", **IN_INSTRUCTIONS))
        assert again.notes == first.notes
        assert (again.status, again.count) == (RecallStatus.USED, first.count)


async def test_they_are_put_back_in_a_crowd_that_leaves_no_place(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "WAITING_MAX", 0)
    first = await begun(rig, **IN_INSTRUCTIONS)
    asks = [f"Where is my kayak number {n}?" for n in range(12)]
    later = [asked(text, previous_response_id="resp_1", **IN_INSTRUCTIONS) for text in asks]
    outcomes = await asyncio.gather(*(rig.recall.recall(USER, one) for one in later))
    assert rig.metrics.registry.get_sample_value("memproxy_recall_shed_total")
    assert [outcome.notes for outcome in outcomes] == [first.notes] * 12


async def test_a_project_s_response_is_unknown_in_another_project(rig: Rig) -> None:
    first = asked(QUESTION)
    keys = (await rig.recall.recall(Scope("u", "p1"), first)).note_keys
    await rig.chains.keep("u", (link_name(Scope("u", "p1"), "resp_1"),), ChainLink("s", "t", keys), at=NOW)
    later = asked(QUESTION, previous_response_id="resp_1")
    told = {project: len((await rig.recall.recall(Scope("u", project), later)).notes) for project in ("p1", "p2", "")}
    assert told == {"p1": 0, "p2": 1, "": 1}


async def test_with_placement_system_a_chain_of_any_length_keeps_its_oldest_note(rig: Rig) -> None:
    first = await rig.recall.recall(USER, asked(QUESTION, **IN_INSTRUCTIONS))
    link = ChainLink("s", "t", first.note_keys)
    for number in range(NOTE_KEYS_MAX + 2):
        await rig.chains.keep("u", ("resp_1",), link, at=NOW)
        request = asked(f"Thanks {number}!", previous_response_id="resp_1", **IN_INSTRUCTIONS)
        outcome = await rig.recall.recall(USER, request)
        assert outcome.notes == first.notes
        link = ChainLink("s", "t", link.followed_by(*outcome.note_keys))
    assert link.note_keys == first.note_keys


async def test_a_template_that_refuses_system_messages_gets_its_notes_in_the_user_s_text(tmp_path: Path) -> None:
    """Where they are anyway if nobody wants it otherwise; a request that wants it gets it."""
    async with rigged(tmp_path, replace(SETTINGS, placement=Placement.SYSTEM)) as rig:
        assert [note.before for note in (await rig.recall.recall(USER, asked(QUESTION))).notes] == [None]
        await rig.model_capabilities.learn("m", Placement.OFF)
        assert [note.before for note in (await rig.recall.recall(USER, asked(QUESTION))).notes] == [0]
        wanted = asked(QUESTION, **IN_INSTRUCTIONS)
        assert [note.before for note in (await rig.recall.recall(USER, wanted)).notes] == [None]


def test_notes_at_the_server_count_in_the_room_and_as_told_and_are_not_placed() -> None:
    request = asked("Will it rain?")
    past = {"k1": PastNote("one", ("m1",), 700), "k2": PastNote("two", ("m2", "m1"), 600)}
    carried = carried_notes(request.conversation, {0: "k3"}, past, at_server=("k1", "lost", "k2"))
    assert carried.held_earlier() == ("m1", "m2")
    assert carried.notes == {}
    as_own = CarriedNotes({-2: past["k1"], -1: past["k2"]}, 0, "k3", is_settled=False)
    for budget in (800, 100):
        assert carried.room(budget=budget, tokens=len) == as_own.room(budget=budget, tokens=len)
    nothing = carried_notes(request.conversation, {}, {})
    assert carried.room(budget=800, tokens=lambda _: 50) < nothing.room(budget=800, tokens=lambda _: 50)


async def test_a_vague_question_of_a_chain_is_searched_with_what_the_chain_is_about(rig: Rig) -> None:
    vague = asked("And where?", previous_response_id="resp_1")
    assert (await rig.recall.recall(USER, vague)).notes == ()
    said = Message("user", QUESTION)
    turn = Turn("t", Scope("u", session_id="s"), NOW, (said,), TurnStatus.CLOSED, answer="At the boathouse.")
    await rig.turn_log.append(turn)
    await rig.chains.keep("u", ("resp_1",), ChainLink("s", "t"), at=NOW)
    outcome = await rig.recall.recall(USER, vague)
    assert [(note.before, KAYAK in note.text) for note in outcome.notes] == [(0, True)]
    assert "kayak" in (await rig.receipt(outcome)).query
    other = asked("Which suspension bridge in Japan is the longest?", previous_response_id="resp_1")
    alone = await rig.recall.recall(USER, other)
    assert "kayak" not in (await rig.receipt(alone)).query
