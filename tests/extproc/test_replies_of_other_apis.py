"""What becomes of replies of the Responses and Messages APIs: one text, a status, and the id of the response."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from message_objects import error_event, message_events, message_object, text_block, thinking_block, tool_block
from response_objects import Item, call_item, event_stream, reasoning_item, refusal_item, response_object, text_item

from extproc.messages_reply import MESSAGES_REPLIES
from extproc.reply import Reply, read_reply
from extproc.responses_reply import RESPONSES_REPLIES
from memory.model import TurnStatus

JSON = [(":status", b"200"), ("content-type", b"application/json")]
SSE = [(":status", b"200"), ("content-type", b"text/event-stream; charset=utf-8")]
ANSWER = "Dein Budget beträgt 10.000 € 🏝\nund mehr"


def from_json(response: Any) -> Reply:
    return read_reply(200, JSON, json.dumps(response).encode(), RESPONSES_REPLIES)


def from_stream(body: bytes) -> Reply:
    return read_reply(200, SSE, body, RESPONSES_REPLIES)


def both(response: Item) -> list[Reply]:
    """As JSON, as a stream, and as a stream whose last event leaves the output out."""
    return [
        from_json(response),
        from_stream(b"".join(event_stream(response))),
        from_stream(b"".join(event_stream(response, is_output_in_the_end=False))),
    ]


@pytest.mark.parametrize(
    ("output", "status", "text"),
    [
        ([text_item(ANSWER)], "completed", ANSWER),
        ([reasoning_item("Hm."), text_item(ANSWER)], "completed", ANSWER),
        ([text_item("One."), text_item("Two.")], "completed", "One.\nTwo."),
        ([text_item("<think>Hm.</think>So.")], "completed", "So."),
        ([text_item("Cut of")], "incomplete", "Cut of"),
        ([call_item("weather", '{"city":"Bonn"}')], "completed", ""),
        ([text_item("Let me see."), call_item("weather")], "completed", ""),
        ([refusal_item("No.")], "completed", ""),
        ([reasoning_item("Hm.")], "completed", ""),
        ([], "completed", ""),
    ],
)
def test_a_reply_is_its_output_text(output: list[Item], status: str, text: str) -> None:
    for reply in both(response_object(output, status=status)):
        assert (reply.status, reply.text, reply.response_id) == (TurnStatus.CLOSED, text, "resp_1")
        assert reply.has_tool_calls == any(item["type"] == "function_call" for item in output)


def test_odd_items_and_tools_of_the_server_take_no_text_from_the_others() -> None:
    odd = [{"type": "message", "content": "just text"}, {"type": "message", "content": [{"type": 5}]}, {"x": 1}]
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}
    assert from_json(response_object([search, *odd, text_item("So.")])).text == "So."


def test_a_response_whose_id_is_a_number_has_its_text_and_no_name() -> None:
    response: Item = {**response_object([text_item("Noted.")]), "id": 7}
    for reply in both(response):
        assert (reply.status, reply.text, reply.response_id) == (TurnStatus.CLOSED, "Noted.", "")


def test_a_response_in_the_background_has_no_answer_yet() -> None:
    reply = from_json(response_object([], status="queued"))
    assert (reply.status, reply.text, reply.response_id) == (TurnStatus.CLOSED, "", "resp_1")


@pytest.mark.parametrize("kind", ["custom_tool_call", "computer_call", "shell_call", "mcp_approval_request"])
def test_every_call_that_the_client_answers_leaves_the_turn_without_its_final_answer(kind: str) -> None:
    reply = from_json(response_object([text_item("I ask."), {"id": "c", "type": kind}]))
    assert (reply.text, reply.has_tool_calls) == ("", True)


def test_a_failed_response_is_no_answer() -> None:
    for reply in both(response_object([text_item("Half")], status="failed")):
        assert (reply.status, reply.text) == (TurnStatus.FAILED, "")
    assert from_json({"object": "error", "message": "x"}).status is TurnStatus.FAILED
    assert from_stream(b'event: error\ndata: {"type":"error","code":"x","message":"y"}\n\n').status is TurnStatus.FAILED
    assert from_stream(b'data: {"error":{"message":"x"}}\n\n').status is TurnStatus.FAILED


def test_a_stream_is_complete_with_its_last_event_whatever_follows() -> None:
    events = event_stream(response_object([text_item(ANSWER)]))
    for end in (b"", b"data: [DONE]\n\n", b"\n\nfoo"):
        reply = from_stream(b"".join(events) + end)
        assert (reply.text, reply.is_done) == (ANSWER, True)


def test_deltas_count_where_a_server_sends_neither_items_nor_output() -> None:
    events = event_stream(response_object([text_item(ANSWER)]), is_output_in_the_end=False)
    kept = [event for event in events if b"output_item" not in event]
    assert from_stream(b"".join(kept)).text == ANSWER
    assert from_stream(b"".join(kept[:-1]) + b"data: [DONE]\n\n").text == ANSWER


def test_llama_cpp_s_stream_is_read() -> None:
    """As its server sends it: fewer fields, no indices, timings in the last event."""
    item = '{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"Hi there"}],"role":"assistant"}'
    stream = (
        'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_9","status":"queued"}}\n\n'
        'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hi"}\n\n'
        'event: response.completed\ndata: {"type":"response.completed","response":{"id":"resp_9","status":"completed",'
        f'"model":"m","output":[{item}]}},"timings":{{"cache_n":31}}}}\n\n'
    )
    reply = from_stream(stream.encode())
    assert (reply.text, reply.response_id) == ("Hi there", "resp_9")


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda i: st.lists(i) | st.dictionaries(st.text(), i)))
def test_no_event_whatever_it_is_raises(value: Any) -> None:
    payload = json.dumps({"type": "response.completed", "response": value}).encode()
    assert from_stream(b"data: " + payload + b"\n\n").text == ""
    assert from_stream(b"data: " + json.dumps(value).encode() + b"\n\n").text == ""


# Replies of Anthropic's Messages API


SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}


def read_json(message: dict[str, Any]) -> Reply:
    return read_reply(200, JSON, json.dumps(message).encode(), MESSAGES_REPLIES)


def read_stream(events: list[bytes]) -> Reply:
    return read_reply(200, SSE, b"".join(events), MESSAGES_REPLIES)


@pytest.mark.parametrize(
    ("content", "more", "text"),
    [
        ([text_block("Grüße 你好")], {}, "Grüße 你好"),
        ([thinking_block("Hm."), text_block("Yes.")], {}, "Yes."),
        ([text_block("<think>Hm.</think>Yes.")], {}, "Yes."),
        ([SEARCH, FOUND, text_block("Dry.")], {}, "Dry."),
        ([text_block("I look."), tool_block("read"), tool_block("list")], {}, ""),
        ([text_block("Half an ans")], {"stop_reason": "max_tokens"}, "Half an ans"),
        ([thinking_block("Hm.")], {"stop_reason": "max_tokens"}, ""),
        ([], {"stop_reason": "refusal"}, ""),
        ([], {}, ""),
    ],
)
def test_a_message_is_its_text_unless_it_calls(content: Any, more: dict[str, str], text: str) -> None:
    message = message_object(content, **more)
    for reply, is_done in ((read_json(message), False), (read_stream(message_events(message)), True)):
        assert (reply.status, reply.text, reply.is_done) == (TurnStatus.CLOSED, text, is_done)
        assert reply.has_tool_calls == any(block["type"] == "tool_use" for block in content)


def test_an_error_in_the_middle_of_a_stream_is_a_failure() -> None:
    events = message_events(message_object([text_block("A long answer.")]))
    assert read_stream([*events[:4], error_event()]).status is TurnStatus.FAILED
    assert read_json({"type": "error", "error": {"type": "api_error", "message": "x"}}).status is TurnStatus.FAILED


def test_a_stream_is_over_once_it_has_said_why_and_aborted_before() -> None:
    *most, delta, stop = message_events(message_object([text_block("A long answer.")]))
    assert read_stream([*most, delta]).text == "A long answer."
    assert not read_stream([*most, delta]).is_done
    assert read_stream([*most, delta, stop]).is_done
    assert read_stream(most).status is TurnStatus.ABORTED


def test_blocks_whose_beginning_is_missing_or_that_are_of_no_shape_do_not_affect_the_others() -> None:
    events = message_events(message_object([text_block("Yes.")]))
    kept = [event for event in events if b"content_block_start" not in event]
    odd = [b'data: {"type":"content_block_delta","delta":7}\n\n', b"data: [DONE\n\n", b'data: {"type":"new_event"}\n\n']
    assert read_stream([*odd, *kept]).text == "Yes."
