"""What a body of the Responses API says, where a note goes, and that nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_shapes import assistant, user

from memory.chat.api_shape import Chain
from memory.chat.completions import ChatRequest, insert_notes, read_chat_request
from memory.chat.responses import BESIDE, RESPONSES
from memory.model import Message, Note, Placement, Role

NOTE = Note('Ann\'s "budget" is\n$10,000 \\ é', before=0)
TEXT = NOTE.text


def asked(body: bytes | dict[str, Any]) -> ChatRequest:
    return read_chat_request(body if isinstance(body, bytes) else json.dumps(body).encode(), RESPONSES)


def said(**body: Any) -> Any:
    return asked(body).conversation


def edited(body: dict[str, Any], *notes: Note) -> Any:
    return json.loads(insert_notes(asked(body), notes))


def text_part(text: str) -> dict[str, str]:
    return {"type": "input_text", "text": text}


QUESTION = Message(Role.USER, "Will it rain?")
S = text_part("S")
DEVELOPER, SYSTEM = {"role": "developer", "content": "S"}, {"role": "system", "content": [S]}
IMAGE = {"type": "input_image", "image_url": "u"}
ANSWER = assistant([{"type": "output_text", "text": "Hello"}], status="completed")
ITEMS: list[tuple[dict[str, Any], Message]] = [
    (user("Hi"), Message("user", "Hi")),
    (user([text_part("Will it"), text_part("rain?")]), Message("user", "Will it\nrain?")),
    (user([IMAGE, text_part("What?")]), Message("user", "What?")),
    (user([{"type": "input_file", "file_id": "f"}]), Message("user", "")),
    ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "secret"}]}, Message("assistant", "")),
    ({"id": "msg", "type": "message", **ANSWER}, Message("assistant", "Hello")),
    ({"type": "function_call", "call_id": "c", "name": "f"}, Message("assistant", "", is_tool_traffic=True)),
    ({"type": "function_call_output", "call_id": "c", "output": "x"}, Message("tool", "", is_tool_traffic=True)),
    ({"type": "web_search_call", "id": "w"}, Message("assistant", "", is_tool_traffic=True)),
    ({"type": "item_reference", "id": "msg_0"}, Message("assistant", "")),
    ({"id": "msg_0"}, Message(BESIDE, "")),
    ({"type": "from_the_future", "role": "user", "content": {"deep": []}}, Message(BESIDE, "")),
    ({"type": 5, "role": ["user"], "content": 7}, Message(BESIDE, "")),
]


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        ({"input": "Will it rain?"}, [QUESTION]),
        ({"input": "Will it rain?", "instructions": "Be brief."}, [Message("system", "Be brief."), QUESTION]),
        ({"input": "Will it rain?", "instructions": ""}, [QUESTION]),
        ({"input": "Will it rain?", "instructions": None}, [QUESTION]),
        ({"input": [user("Will it rain?", type="message", status="completed", id="msg_1")]}, [QUESTION]),
        ({"input": [item for item, _ in ITEMS]}, [message for _, message in ITEMS]),
    ],
)
def test_a_conversation_is_read_item_by_item(body: dict[str, Any], messages: list[Message]) -> None:
    assert said(**body).messages == tuple(messages)


@pytest.mark.parametrize(
    ("fields", "chain", "held_under"),
    [
        ({}, Chain(), ""),
        ({"previous_response_id": None, "conversation": None}, Chain(), ""),
        ({"previous_response_id": 7, "conversation": [1]}, Chain(), ""),
        ({"previous_response_id": "resp_1"}, Chain("resp_1"), "resp_1"),
        ({"conversation": "conv_1"}, Chain("", "conv_1"), "conv_1"),
        ({"conversation": {"id": "conv_1"}}, Chain("", "conv_1"), "conv_1"),
        ({"conversation": {"id": None}, "previous_response_id": "resp_1"}, Chain("resp_1"), "resp_1"),
    ],
)
def test_what_the_server_is_to_go_on_from(fields: dict[str, Any], chain: Chain, held_under: str) -> None:
    found = asked({"input": "Hi", **fields}).chain
    assert (found, found.held_under) == (chain, held_under)


def test_a_string_stays_a_string_and_every_other_byte_as_it_was() -> None:
    body = b'{ "temperature":1.0e0 , "input" : "Hi\\u00e9 \\ud83d" ,"memory_context":{}, "store":true}'
    left = b'{ "temperature":1.0e0 , "input" : "N\\n\\nHi\\u00e9 \\ud83d" ,"store":true}'
    assert insert_notes(asked(body), [Note("N", 0)]) == left


@pytest.mark.parametrize(
    ("content", "with_note"),
    [
        ("Hi", f"{TEXT}\n\nHi"),
        ("", f"{TEXT}\n\n"),
        (None, TEXT),
        ([], [text_part(TEXT)]),
        ([text_part("Hi")], [text_part(f"{TEXT}\n\nHi")]),
        ([text_part("Hi"), IMAGE], [text_part(f"{TEXT}\n\nHi"), IMAGE]),
        ([IMAGE], [text_part(TEXT), IMAGE]),
        (["Hi"], [text_part(TEXT), "Hi"]),
    ],
)
def test_a_note_stands_at_the_head_of_the_message_s_text(content: Any, with_note: Any) -> None:
    assert edited({"input": [user(content, id="x")]}, NOTE) == {"input": [user(with_note, id="x")]}
    assert edited({"input": [{"role": "user"}]}, NOTE) == {"input": [user(TEXT)]}, "also without any"


def test_notes_go_to_their_own_messages_past_items_that_are_none() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    body = {"instructions": "Be brief.", "input": [user("one"), call, {"type": "unknown", "x": [1]}, user("two")]}
    got = edited(body, Note("first", 1), Note("second", 4))
    assert got["input"] == [user("first\n\none"), call, {"type": "unknown", "x": [1]}, user("second\n\ntwo")]
    assert got["instructions"] == "Be brief."


@pytest.mark.parametrize(
    ("body", "left", "placement"),
    [
        ({"input": "Hi"}, {"instructions": "N", "input": "Hi"}, Placement.SYSTEM),
        ({"input": "Hi", "instructions": None}, {"input": "Hi", "instructions": "N"}, Placement.SYSTEM),
        ({"input": "Hi", "instructions": "S"}, {"input": "Hi", "instructions": "S\n\nN"}, None),
        ({"input": [DEVELOPER]}, {"input": [{**DEVELOPER, "content": "S\n\nN"}]}, None),
        ({"input": [SYSTEM]}, {"input": [{**SYSTEM, "content": [S, text_part("N")]}]}, None),
    ],
)
def test_with_placement_system_notes_go_to_the_end_of_the_instructions(body: Any, left: Any, placement: Any) -> None:
    assert edited(body, Note("N")) == left
    assert RESPONSES.refusable(asked(body), [Note("N")]) == placement
    assert RESPONSES.refusable(asked(body), [NOTE]) is None, "no template can refuse it inside a user's message"


def keys(body: dict[str, Any]) -> list[bytes]:
    request = asked(body)
    return [bytes(one) for one in request.shape.message_bytes(request)]


def test_a_string_and_its_item_are_one_and_so_are_an_answer_s_ways_home() -> None:
    """A client may begin with a string and go on with items; the prompt is the same, so the note is found again."""
    parts = user([text_part("Hi")], id="msg_7")
    assert keys({"input": "Hi"}) == keys({"input": [user("Hi")]}) == keys({"input": [parts]})
    answers = assistant("Hello"), {**ANSWER, "id": "m", "type": "message"}
    assert len({tuple(keys({"input": [user("Hi"), answer]})) for answer in answers}) == 1


def test_what_differs_in_the_prompt_differs_in_the_keys() -> None:
    bodies: list[dict[str, Any]] = [
        {"input": "Hi"},
        {"input": "Hi", "instructions": "Be brief."},
        {"input": "Hi", "previous_response_id": "resp_1"},
        {"input": "Hi", "conversation": "conv_1"},
        {"input": [assistant("Hi")]},
        {"input": [user([text_part("Hi"), IMAGE])]},
        {"input": [user([text_part("Hi"), {"type": "input_image", "image_url": "v"}])]},
    ]
    assert len({tuple(keys(body)) for body in bodies}) == len(bodies)


def test_past_the_bound_a_history_is_no_conversation_and_before_an_answer_s_reference_nothing_is_new() -> None:
    assert len(said(input=[user("x")] * 20_000).messages) == 20_000
    assert said(input=[user("x")] * 20_001) is None
    items = [user("I live in Porto."), {"type": "item_reference", "id": "msg_1"}, user("And I row.")]
    assert said(input=items).new_user_messages() == (Message("user", "And I row."),)
