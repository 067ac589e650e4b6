"""Cuts of a resent history: no tool call without its result, no broken JSON, and every kept byte as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_shapes import ASKED_RESPONSES, read_response
from api_shapes import read_completion as chat
from hypothesis import given
from hypothesis import strategies as st

from memory.chat.api_shape import ApiShape
from memory.chat.completions import COMPLETIONS, ChatRequest, insert_notes, read_chat_request
from memory.chat.history import clean_cuts, deletions, is_clean
from memory.chat.responses import RESPONSES
from memory.model import CompactedHistory, Note

STATE = "STATE of what was said"
USER, ANSWER = {"role": "user", "content": "What now?"}, {"role": "assistant", "content": "This."}
SYSTEM = {"role": "system", "content": "Be brief."}


def call(name: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": name, "type": "function", "function": {}}]}


def result(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": "42"}


def item_call(name: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"}


def item_result(name: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": "42"}


def compacted(request: ChatRequest, end: int) -> bytes:
    return insert_notes(request, (Note(STATE),), deletions(request, CompactedHistory(end, STATE)))


def left_of(request: ChatRequest, end: int) -> Any:
    return json.loads(compacted(request, end))


@pytest.mark.parametrize(
    ("request_", "cuts"),
    [
        (chat(SYSTEM, USER, ANSWER, USER, ANSWER, USER), {1, 3, 5}),
        (chat(USER, ANSWER, USER), {2}),
        (chat(USER, call("a"), USER, result("a"), ANSWER, USER), {5}),
        (chat(USER, call("a"), USER, ANSWER, USER), set()),  # no result yet
        (chat(USER, ANSWER, USER, result("a"), ANSWER, USER), {5}),
        (read_response([USER, item_call("a"), USER, item_result("a"), ANSWER, USER]), {5}),
        (read_response([USER, ANSWER, {"type": "compaction", "encrypted_content": "x"}, USER]), set()),
        (read_response([USER, ANSWER, USER], previous_response_id="resp_1"), set()),
    ],
)
def test_a_cut_stands_before_a_message_of_the_user_and_divides_no_call(request_: ChatRequest, cuts: set[int]) -> None:
    assert clean_cuts(request_) == cuts
    assert all(is_clean(request_, cut) for cut in cuts)
    assert not is_clean(chat(USER, call("a"), USER, result("a"), ANSWER, USER), 2)


@pytest.mark.parametrize(
    "opaque",
    [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
        {"role": "narrator", "content": "Meanwhile."},
    ],
)
def test_nothing_is_left_out_that_text_cannot_replace(opaque: dict[str, Any]) -> None:
    assert clean_cuts(chat(USER, ANSWER, USER, ANSWER, opaque, ANSWER, USER)) <= {2, 4}


def test_the_state_goes_into_the_client_s_system_message_or_is_one_and_the_rest_stays() -> None:
    then = {**USER, "content": "And then?"}
    said = left_of(chat(SYSTEM, USER, ANSWER, USER, ANSWER, then), 3)
    assert said["messages"] == [{**SYSTEM, "content": f"Be brief.\n\n{STATE}"}, USER, ANSWER, then]
    assert left_of(chat(USER, ANSWER, USER), 2)["messages"] == [{"role": "system", "content": STATE}, USER]


def test_items_of_the_responses_api_are_left_out_alike() -> None:
    said = left_of(read_response([USER, item_call("a"), item_result("a"), ANSWER, USER], instructions="Be brief."), 5)
    assert (said["instructions"], said["input"]) == (f"Be brief.\n\n{STATE}", [USER])
    assert left_of(read_response([USER, ANSWER, USER]), 2)["instructions"] == STATE


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Turns with and without tool calls, whose results come at once, later, twice, or never."""
    messages: list[dict[str, Any]] = [SYSTEM] if draw(st.booleans()) else []
    open_calls: list[str] = []
    for turn in range(draw(st.integers(2, 8))):
        messages.append({"role": "user", "content": draw(st.text(max_size=8))})
        for number in range(draw(st.integers(0, 2))):
            open_calls.append(f"c{turn}-{number}")
            messages.append(call(open_calls[-1]))
        while open_calls and draw(st.booleans()):
            messages.append(result(open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))))
        if draw(st.booleans()):
            messages.append({"role": "assistant", "content": draw(st.text(max_size=8))})
        if draw(st.integers(0, 5)) == 0:
            messages.append(SYSTEM)
    return [*messages, USER]


@given(histories(), st.sampled_from([COMPLETIONS, RESPONSES]), st.sampled_from([None, 2]))
def test_whatever_is_cut_pairs_stay_whole_and_what_is_kept_stays(messages: Any, shape: ApiShape, indent: Any) -> None:
    name, sent = ("messages", messages) if shape is COMPLETIONS else ("input", ASKED_RESPONSES.body(messages)["input"])
    request = read_chat_request(json.dumps({"model": "m", name: sent}, indent=indent).encode(), shape)
    for cut in clean_cuts(request):
        body = compacted(request, cut)
        assert body == compacted(request, cut)
        left = json.loads(body)[name]
        assert left[len(left) - (len(sent) - cut) :] == sent[cut:], "all from the cut on is verbatim"
        made = {c["id"] for m in left for c in m.get("tool_calls", ())}
        made |= {m["call_id"] for m in left if m.get("type") == "function_call"}
        told = {m["tool_call_id"] for m in left if "tool_call_id" in m}
        told |= {m["call_id"] for m in left if m.get("type") == "function_call_output"}
        gone = [m for m in sent[:cut] if m not in left]
        assert told <= made, "a result without its call"
        assert not {c["id"] for m in gone for c in m.get("tool_calls", ())} & told
        assert sum(m.get("role") == "system" for m in sent) <= sum(m.get("role") == "system" for m in left)
        assert STATE in body.decode()
