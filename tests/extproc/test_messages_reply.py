"""Replies of Anthropic's Messages API: what becomes of them, in one piece and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from message_objects import error_event, message_events, message_object, text_block, thinking_block, tool_block

from extproc.messages_reply import MESSAGES_REPLIES
from extproc.reply import Reply, read_reply
from memory.model import TurnStatus

JSON = [("content-type", b"application/json")]
SSE = [("content-type", b"text/event-stream; charset=utf-8")]
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
