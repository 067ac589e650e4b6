"""What a request brings back of tool calls: the last calls and their results, whatever the API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory.chat.completions import COMPLETIONS, read_chat_request
from memory.chat.responses import RESPONSES
from memory.chat.tool_traffic import CONTENT_CHARACTERS_MAX, tool_messages
from memory.model import ToolMessage

QUESTION = {"role": "user", "content": "Will it rain?"}


def calling(*calls: tuple[str, str, Any]) -> dict[str, Any]:
    named = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": with_}} for one, name, with_ in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": named}


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def chat(*messages: Any) -> tuple[ToolMessage, ...]:
    return tool_messages(read_chat_request(json.dumps({"model": "m", "messages": messages}).encode(), COMPLETIONS))


def response(*items: Any, **fields: Any) -> tuple[ToolMessage, ...]:
    body = {"model": "m", "input": items, **fields}
    return tool_messages(read_chat_request(json.dumps(body).encode(), RESPONSES))


def test_the_last_calls_come_with_their_results_and_names() -> None:
    first = (calling(("c0", "old", "{}")), result("c0", "old result"))
    second = calling(("c1", "weather", '{"city": "Köln"}'), ("c2", "clock", "{}"))
    parts = [{"type": "text", "text": "no"}, {"type": "text", "text": "on"}]
    assert chat(QUESTION, *first, second, result("c1", "rain"), result("c2", parts)) == (
        ToolMessage("weather", '{"city": "Köln"}', "c1"),
        ToolMessage("clock", "{}", "c2"),
        ToolMessage("weather", "rain", "c1", is_result=True),
        ToolMessage("clock", "no\non", "c2", is_result=True),
    )


def test_older_functions_and_custom_tools_are_read() -> None:
    function = {"role": "assistant", "function_call": {"name": "f", "arguments": {"a": 1}}}
    assert chat(QUESTION, function, {"role": "function", "name": "f", "content": "1"}) == (
        ToolMessage("f", '{"a": 1}'),
        ToolMessage("f", "1", is_result=True),
    )
    custom = {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "g", "input": "x"}}]}
    assert chat(QUESTION, custom, result("c", "y"))[0] == ToolMessage("g", "x", "c")


def test_items_of_responses_are_read_with_and_without_their_calls() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
    named = ToolMessage("weather", "rain", "c1", is_result=True)
    assert response(QUESTION, call, output) == (ToolMessage("weather", "{}", "c1"), named)
    assert response(output, previous_response_id="r") == (ToolMessage("", "rain", "c1", is_result=True),)
    shell = {"type": "local_shell_call", "call_id": "c2", "arguments": "ls"}
    listed = {"type": "local_shell_call_output", "call_id": "c2", "output": [{"type": "output_text", "text": "a"}]}
    assert response(QUESTION, shell, listed)[1] == ToolMessage("local_shell", "a", "c2", is_result=True)


def test_long_texts_are_cut() -> None:
    _, long = chat(QUESTION, calling(("c", "f", "{}")), result("c", "x" * 1_000_000))
    assert len(long.content) == CONTENT_CHARACTERS_MAX


@pytest.mark.parametrize(
    "messages",
    [
        (QUESTION,),
        (QUESTION, calling(("c", "f", "{}")), QUESTION),
        (QUESTION, {"role": "assistant", "content": "hello"}),
        (QUESTION, {"role": "tool", "tool_calls": 7}),
    ],
)
def test_nothing_is_made_up(messages: tuple[Any, ...]) -> None:
    assert chat(*messages) == ()


def test_a_string_for_an_input_has_no_tools() -> None:
    assert tool_messages(read_chat_request(b'{"input": "hello"}', RESPONSES)) == ()
    assert tool_messages(read_chat_request(b"{}", COMPLETIONS)) == ()
