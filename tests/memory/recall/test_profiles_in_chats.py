"""A profile opens the first note of a conversation, on both APIs: its place, its bytes, and when it stays out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from absent_stores import memory_bank, request_stores
from api_shapes import read_response, user
from recall_rig import KAYAK, NOW, SETTINGS, Rig, request_with, rigged
from token_counts import counted_tokens

from memory.chat.completions import ChatRequest, insert_notes
from memory.model import ChainLink, Memory, Note, Placement, RecallStatus, Scope
from memory.recall.notes.past_notes import note_keys
from memory.recall.notes.profile_notes import ProfileUse
from memory.recall.pipeline import RecallOutcome
from memory.service.erasure import Erasure
from memory.service.profile_layout import HEAD, WISHES_FOOT, WISHES_HEAD, pinned_line
from memory.service.profiles import ProfileBuilder

QUESTION = "Where is my kayak stored?"
UNKNOWN = "Which boat did my cousin Zora charter in Bergen?"
VEGAN = Memory("m2", "u", "I am vegan", NOW, NOW, NOW, attribute="diet")
LEEDS = Memory("m3", "u", "I live in Leeds", NOW, NOW, NOW, attribute="home")
USER = Scope("u")
TOKENS = counted_tokens()


def request_to(*messages: dict[str, str], **config: Any) -> ChatRequest:
    return request_with(messages, **config)


def unknown(*earlier: dict[str, str]) -> ChatRequest:
    """A question that no memory answers."""
    return request_to(*earlier, user(UNKNOWN), similarity_threshold=1.0)


SAID = {"role": "assistant", "content": "In Dorset."}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path, replace(SETTINGS, profile=ProfileUse.SEARCHED)) as running:
        await told(running, VEGAN)
        yield running


async def told(rig: Rig, *memories: Memory) -> None:
    """These memories, and profiles of all."""
    await rig.write(*memories)
    bank = memory_bank(rig.store, rig.ledger, rig.embedder)
    assert await ProfileBuilder(memories=bank, profiles=rig.profiles, clock=lambda: NOW, tokens=TOKENS).build("u")


async def asked(rig: Rig, request: ChatRequest) -> RecallOutcome:
    return await rig.recall.recall(USER, request)


def profile_of(note: Note) -> str:
    return note.text.partition("</profile>")[0] if "<profile>" in note.text else ""


def prompt(request: ChatRequest, outcome: RecallOutcome) -> str:
    return json.dumps(json.loads(insert_notes(request, outcome.notes)), ensure_ascii=False)


async def test_it_stands_ahead_of_what_was_found_is_put_back_with_it_and_counts_as_no_use(rig: Rig) -> None:
    first = await asked(rig, request_to(user(QUESTION)))
    (note,) = first.notes
    assert note.text.startswith(f"{HEAD}\n- [2025-06-15] I am vegan\n</profile>\n\n<memory>\n")
    assert KAYAK in note.text
    assert (note.before, first.count, first.reason) == (0, 2, "found")
    assert (await rig.uses()).keys() == {"m1"}
    again = await asked(rig, request_to(user(QUESTION), SAID, user("Thanks! Where is my kayak stored again?")))
    assert again.notes == first.notes


async def test_what_it_holds_is_not_repeated_after_it_or_later(rig: Rig) -> None:
    await told(rig, replace(VEGAN, id="m1", content=KAYAK, attribute="possession"))
    outcome = await asked(rig, request_to(user(QUESTION)))
    assert [note.text.count(KAYAK) for note in outcome.notes] == [1]
    assert "<memory>" not in outcome.notes[0].text
    assert outcome.reason == "found"
    later = await asked(rig, request_to(user(QUESTION), SAID, user("Where exactly is my kayak stored?")))
    assert later.notes == outcome.notes


async def test_a_conversation_keeps_the_version_that_it_began_with(rig: Rig) -> None:
    first = await asked(rig, request_to(user(QUESTION)))
    await told(rig, LEEDS)
    later = await asked(rig, request_to(user(QUESTION), SAID, user("And where is my kayak stored in winter?")))
    assert later.notes[0] == first.notes[0]
    assert not any("<profile>" in note.text for note in later.notes[1:])
    (new,) = (await asked(rig, request_to(user("Where is my kayak stored today?")))).notes
    assert "I live in Leeds" in profile_of(new)
    (same_opening,) = (await asked(rig, request_to(user(QUESTION)))).notes
    assert "I live in Leeds" in profile_of(same_opening)


async def test_in_a_chain_it_is_in_the_server_s_part_and_not_sent_again(rig: Rig) -> None:
    request, later = read_response(QUESTION), "Where is my kayak stored again?"
    await asked(rig, request)
    await rig.chains.keep("u", ("resp_1",), ChainLink("s", "t", tuple(note_keys(USER, request).values())), at=NOW)
    assert (await asked(rig, read_response(later, previous_response_id="resp_1"))).notes == ()
    system = {"memory_config": {"placement": "system"}}
    merged = await asked(rig, read_response(later, previous_response_id="resp_1", **system))
    assert [note.text.count("I am vegan") for note in merged.notes] == [1]


@pytest.mark.parametrize("placement", [Placement.SYSTEM, Placement.BEFORE_LAST_USER])
async def test_the_prompt_has_it_once_and_begins_with_the_one_before(rig: Rig, placement: str) -> None:
    """The client's own system message stays first."""
    messages, config = [{"role": "system", "content": "Be brief."}, user(QUESTION)], {"placement": str(placement)}
    request = request_to(*messages, **config)
    before = prompt(request, await asked(rig, request))
    request = request_to(*messages, SAID, user("Thanks, where was my kayak stored again?"), **config)
    after = prompt(request, await asked(rig, request))
    assert before.count("I am vegan") == after.count("I am vegan") == 1
    assert after.startswith(before[: before.index(QUESTION)])
    assert before.index("Be brief.") < before.index("<profile>") < before.index(QUESTION)


async def test_a_forgotten_memory_leaves_a_conversation_s_profile_and_the_next_question_gets_another(rig: Rig) -> None:
    await told(rig, LEEDS)
    first = request_to(user(QUESTION))
    assert "Leeds" in prompt(first, await asked(rig, first))
    bank = memory_bank(rig.store, rig.ledger, rig.embedder)
    stores = request_stores(rig.notes, rig.receipts, rig.usage_counts, rig.profiles)
    await Erasure(memories=bank, turn_log=rig.turn_log, stores=stores, clock=lambda: NOW - 1).memory("u", "m3")
    later = request_to(user(QUESTION), SAID, user("Where is my kayak stored in winter?"))
    sent = prompt(later, await asked(rig, later))
    assert "Leeds" not in sent
    assert sent.count("I am vegan") == 1


async def test_a_request_can_do_without_or_ask_for_some_types_and_a_user_can_switch_it_off(rig: Rig) -> None:
    config: dict[str, Any]
    for config in ({"profile": False}, {"memory_types": ["semantic"]}):
        (alone,) = (await asked(rig, request_to(user(QUESTION), **config))).notes
        assert alone.text.startswith("<memory>")
    opening = user("Please, where is my kayak stored?")
    await asked(rig, request_to(opening))
    (stripped,) = (await asked(rig, request_to(opening, SAID, user("Thanks!"), profile=False))).notes
    assert (stripped.text.startswith("<memory>"), KAYAK in stripped.text) == (True, True)
    await rig.profiles.set_own("u", "", is_enabled=False, now=NOW)
    outcome = await asked(rig, request_to(user("So where is my kayak stored?")))
    assert not any("<profile>" in note.text for note in outcome.notes)


async def test_a_question_about_something_else_gets_it_and_says_so(rig: Rig) -> None:
    outcome = await asked(rig, unknown())
    assert (outcome.status, outcome.reason, outcome.count) == (RecallStatus.USED, "profile", 1)
    assert "<memory>" not in outcome.notes[0].text
    assert (await rig.receipt(outcome)).signals["profile"] == {"version": 1, "project_version": 0}


@pytest.mark.parametrize(
    ("use", "with_greeting", "with_unknown"),
    [
        (None, False, False),
        (ProfileUse.WITH_MEMORIES, False, False),
        (ProfileUse.SEARCHED, False, True),
        (ProfileUse.ALWAYS, True, True),
    ],
)
async def test_the_setting_says_when_it_goes(tmp_path: Path, use: Any, with_greeting: bool, with_unknown: bool) -> None:
    async with rigged(tmp_path, replace(SETTINGS, profile=use)) as rig:
        await told(rig, VEGAN)
        known = request_to(user(QUESTION))
        cases = (request_to(user("Hi!")), with_greeting), (unknown(), with_unknown), (known, use is not None)
        for request, expected in cases:
            outcome = await asked(rig, request)
            assert any("I am vegan" in note.text for note in outcome.notes) == expected, request.body


async def test_a_project_s_lines_go_along_in_that_project_alone(rig: Rig) -> None:
    await told(rig, Memory("m4", "u", "I use Rust here", NOW, NOW, NOW, project_id="atlas", attribute="tool"))
    for project_id, expected in (("atlas", True), ("", False), ("zeus", False)):
        outcome = await rig.recall.recall(Scope("u", project_id), request_to(user(QUESTION)))
        assert any("I use Rust here" in note.text.split("<memory>")[0] for note in outcome.notes) == expected
    assert (await rig.recall.recall(Scope("v"), request_to(user(QUESTION)))).notes == ()


GERMAN = Memory("m5", "u", "Answer in German", NOW, NOW, NOW, memory_type="procedural", attribute="answer_language")
WISHES = f"{WISHES_HEAD}\n- [2025-06-15] Answer in German\n{WISHES_FOOT}"


async def pinned(rig: Rig, *lines: str) -> None:
    await rig.profiles.set_own("u", "", pinned=[pinned_line(line, tokens=TOKENS) for line in lines], now=NOW)


async def test_wishes_go_along_with_every_first_message_whatever_the_profile_does_and_once(tmp_path: Path) -> None:
    async with rigged(tmp_path, replace(SETTINGS, profile=ProfileUse.WITH_MEMORIES)) as rig:
        await told(rig, GERMAN, VEGAN)
        for request in (request_to(user("Hi!")), unknown(), request_to(user("What time is it?"))):
            outcome = await asked(rig, request)
            assert [note.text for note in outcome.notes] == [WISHES]
            assert (outcome.status, outcome.reason) == (RecallStatus.USED, "wishes")
        (note,) = (await asked(rig, request_to(user(QUESTION)))).notes
        assert note.text.startswith(f"{WISHES}\n\n{HEAD}\n")
        assert "Answer in German" not in note.text.removeprefix(WISHES)
        first, later = (await asked(rig, request_to(user("Hi!"), SAID, user(QUESTION)))).notes
        assert first.text == WISHES
        assert later.text.startswith(f"{HEAD}\n- [2025-06-15] I am vegan\n")
        assert "Answer in German" not in later.text


async def test_wishes_that_change_go_along_again_and_the_prefix_stays(rig: Rig) -> None:
    await told(rig, GERMAN)
    first = await asked(rig, request_to(user("Hi!")))
    await pinned(rig, "No emojis")
    later = await asked(rig, request_to(user("Hi!"), SAID, user("Thanks!")))
    assert later.notes[0] == first.notes[0]
    assert "- No emojis\n- [2025-06-15] Answer in German" in later.notes[1].text
    assert (await asked(rig, request_to(user("Hi!"), SAID, user("Thanks!"), SAID, user("Bye!")))).notes == later.notes


async def test_no_wishes_for_a_request_without_profile_nor_for_others(rig: Rig) -> None:
    await pinned(rig, "Answer in German")
    assert (await asked(rig, request_to(user("Hi!"), profile=False))).notes == ()
    assert (await rig.recall.recall(Scope("v"), request_to(user("Hi!")))).notes == ()
    title = "### Task:\nGenerate a title.\n<chat_history>\nUSER: Hi!\n</chat_history>"
    assert (await asked(rig, request_to(user(title)))).notes == (), "which a client asks for"
    (note,) = (await asked(rig, request_to(user("Hi!"), memory_types=["episodic"]))).notes
    assert "- Answer in German" in note.text


async def test_where_both_do_not_fit_the_wishes_do(rig: Rig) -> None:
    await pinned(rig, "Answer in German")
    (note,) = (await asked(rig, request_to(user("Where is the kayak now?"), profile=True, token_budget=60))).notes
    assert note.text == f"{WISHES_HEAD}\n- Answer in German\n{WISHES_FOOT}"
