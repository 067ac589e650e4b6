"""What of a sent history counts: exchanges, the keys by which a conversation is recognised, and the last tool calls."""

from __future__ import annotations

from typing import Any

import pytest
from api_shapes import assistant, read_completion, read_response, user
from hypothesis import given
from hypothesis import strategies as st

from memory.chat.completions import COMPLETIONS, ChatRequest, read_chat_request
from memory.chat.exchanges import exchanges_of
from memory.chat.sent_conversations import sent_conversation
from memory.chat.tool_traffic import CONTENT_CHARACTERS_MAX, tool_messages
from memory.model import EARLIER_BYTES_MAX, EARLIER_EXCHANGES_MAX, Message, Scope, ToolMessage

CODES = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}


def history(codes: str) -> list[Message]:
    """`u1 a2 …`: each message says its own code; `c` is a tool call of the assistant, `e` an empty answer."""
    special = {"c": Message("assistant", "call", is_tool_traffic=True), "e": Message("assistant", " ")}
    return [special.get(one[0]) or Message(CODES[one[0]], one, is_tool_traffic=one[0] == "t") for one in codes.split()]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ("u1 a1", ["u1>a1"]), ("s u1 a1 u2 a2", ["u1>a1", "u2>a2"]), ("u1 u2 a1 u3", ["u1 u2>a1", "u3>"]),
        ("a0 u1 a1", ["a0 u1>a1"]), ("u1 c t1 a1", ["u1>a1"]), ("u1 a1 a2", ["u1>a2"]),
        ("u1 e u2 a2", ["u1 u2>a2"]), ("u1 c t1", ["u1>"]), ("a1 s t1", []), ("", []),
    ],
)  # fmt: skip
def test_each_exchange_is_what_the_user_said_and_the_last_answer(codes: str, expected: list[str]) -> None:
    found = [" ".join(m.content for m in e.said) + ">" + e.answer for e in exchanges_of(history(codes))]
    assert found == expected


@given(st.lists(st.sampled_from(["u", "a", "s", "t", "c", "e"]), max_size=30))
def test_every_word_of_the_user_is_in_exactly_one_exchange_in_order(codes: list[str]) -> None:
    messages = history(" ".join(f"{code}{i}" for i, code in enumerate(codes)))
    said = [m for e in exchanges_of(messages) for m in e.said if m.role == "user"]
    assert said == [m for m in messages if m.role == "user"]
    assert all(e.said[-1].role == "user" for e in exchanges_of(messages))


ANN = Scope("ann")


CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": {}}]}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "rain"}


def read(*messages: dict[str, Any], scope: Scope = ANN) -> Any:
    return sent_conversation(scope, read_completion(*messages))


@pytest.mark.parametrize(("text", "counts"), [("Yes.", [1, 2, 1]), ("My sister lives in Lisbon.", [1, 2, 3])])
def test_what_is_said_again_is_counted_where_it_is_short_beside_its_answer(text: str, counts: list[int]) -> None:
    again = (message for answer in "aab" for message in (user(text), assistant(answer)))
    assert [one.occurrence for one in read(*again, user("last")).earlier] == counts


def test_a_request_knows_the_key_that_the_request_before_it_had() -> None:
    first = read(user("a"))
    second = read(user("a"), assistant("b"), user("c"))
    third = read(user("a"), assistant("b"), user("c"), assistant("d"), user("e"))
    assert [exchange.key for exchange in third.earlier] == [*first.keys, *second.keys]
    assert third.earlier[1].said == (Message("user", "c"),)
    assert [exchange.answer for exchange in third.earlier] == ["b", "d"]
    both, loop = read(user("a"), user("b")), read(user("a"), CALL, RESULT, user("b"))
    assert (len(both.keys), both.keys[0]) == (2, first.keys[0]), "each new message has one"
    assert [(one.said, one.answer) for one in loop.earlier] == [((Message("user", "a"),), "")]
    assert len(loop.keys) == 1, "a message during a tool loop is a turn of its own"


@pytest.mark.parametrize(
    "same",
    [
        [{"role": "system", "content": "Today is Monday."}, user("a"), assistant("b"), user("c")],
        [user("a"), CALL, RESULT, assistant("b"), user("c")],
        [user("a"), assistant("b"), {"role": "system", "content": "a note"}, user("c")],
        [{"role": "user", "content": [{"type": "text", "text": "a"}]}, assistant("b"), user("c")],
        [user("a"), assistant("b"), user(" "), user("c")],
    ],
)
def test_system_messages_tool_traffic_and_notation_do_not_count(same: list[dict[str, Any]]) -> None:
    assert read(*same).keys[-1] == read(user("a"), assistant("b"), user("c")).keys[-1]


@pytest.mark.parametrize(
    "other",
    [
        [user("A"), assistant("b"), user("c")],
        [user("a"), assistant("B"), user("c")],
        [user("ab"), user("c")],
        [user("a"), user("b"), user("c")],
        [user("a"), user("c")],
        [user("c")],
    ],
)
def test_other_words_give_another_key(other: list[dict[str, Any]]) -> None:
    assert read(*other).keys[-1] != read(user("a"), assistant("b"), user("c")).keys[-1]


def test_the_same_words_of_another_user_project_or_agent_have_another_key() -> None:
    scopes = [ANN, Scope("bob"), Scope("ann", "p"), Scope("ann", agent_id="p"), Scope("annp")]
    assert len({read(user("a"), scope=scope).keys for scope in scopes}) == len(scopes)
    assert read(user("a"), scope=Scope("ann", session_id="s")) == read(user("a"))


@pytest.mark.parametrize("messages", [[user("a"), assistant("b")], [user(" ")], [user("a"), CALL, RESULT]])
def test_a_request_without_news_has_none(messages: list[dict[str, Any]]) -> None:
    assert sent_conversation(ANN, read_completion(*messages)) is None


def test_the_same_words_in_two_chains_of_responses_have_different_keys() -> None:
    chains = ({}, {"previous_response_id": "r1"}, {"previous_response_id": "r2"}, {"conversation": "r3"})
    assert len({sent_conversation(ANN, read_response("a", **chain)).keys for chain in chains}) == 4


def test_of_a_long_history_so_many_exchanges_are_taken_along() -> None:
    talk = [one for number in range(5_000) for one in (user(f"question {number}"), assistant(f"answer {number}"))]
    found = read(*talk, user("last"))
    assert len(found.earlier) == EARLIER_EXCHANGES_MAX
    assert found.earlier[-1].said == (Message("user", "question 4999"),)


def test_texts_are_taken_along_up_to_a_limit_newest_first() -> None:
    long = "x" * (EARLIER_BYTES_MAX // 2)
    found = read(user("a"), assistant("b"), user(long), assistant(long), user("c"), assistant("d"), user("e"))
    assert [bool(exchange.said) for exchange in found.earlier] == [False, False, True]
    assert len({exchange.key for exchange in found.earlier}) == 3


SYSTEM = {"role": "system", "content": "s"}


@given(st.lists(st.sampled_from([user("a"), assistant("b"), CALL, RESULT, user(""), SYSTEM])))
def test_every_prefix_that_was_a_request_is_recognised(messages: list[dict[str, Any]]) -> None:
    """Whatever the order: what a request adds, the next one finds."""
    messages = [*messages, user("new")]
    now = read(*messages)
    later = read(*messages, assistant("answer"), user("later"))
    assert later.earlier[-1].key == now.keys[-1]
    assert later.earlier[:-1] == now.earlier


QUESTION = user("Will it rain?")


def calling(*calls: tuple[str, str, Any]) -> dict[str, Any]:
    named = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": with_}} for one, name, with_ in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": named}


def tool_result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def test_the_last_calls_come_with_their_results_and_names() -> None:
    first = (calling(("c0", "old", "{}")), tool_result("c0", "old result"))
    second = calling(("c1", "weather", '{"city": "Köln"}'), ("c2", "clock", "{}"))
    parts = [{"type": "text", "text": "no"}, {"type": "text", "text": "on"}]
    results = tool_result("c1", "rain"), tool_result("c2", parts)
    assert tool_messages(read_completion(QUESTION, *first, second, *results)) == (
        ToolMessage("weather", '{"city": "Köln"}', "c1"),
        ToolMessage("clock", "{}", "c2"),
        ToolMessage("weather", "rain", "c1", is_result=True),
        ToolMessage("clock", "no\non", "c2", is_result=True),
    )


def test_older_functions_and_custom_tools_are_read() -> None:
    function = {"role": "assistant", "function_call": {"name": "f", "arguments": {"a": 1}}}
    assert tool_messages(read_completion(QUESTION, function, {"role": "function", "name": "f", "content": "1"})) == (
        ToolMessage("f", '{"a": 1}'),
        ToolMessage("f", "1", is_result=True),
    )
    custom = {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "g", "input": "x"}}]}
    called, result = tool_messages(read_completion(QUESTION, custom, tool_result("c", "y" * 1_000_000)))
    assert called == ToolMessage("g", "x", "c")
    assert len(result.content) == CONTENT_CHARACTERS_MAX, "long texts are cut"


def test_items_of_responses_are_read_with_and_without_their_calls() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
    named = ToolMessage("weather", "rain", "c1", is_result=True)
    assert tool_messages(read_response([QUESTION, call, output])) == (ToolMessage("weather", "{}", "c1"), named)
    alone = read_response([output], previous_response_id="r")
    assert tool_messages(alone) == (ToolMessage("", "rain", "c1", is_result=True),)
    shell = {"type": "local_shell_call", "call_id": "c2", "arguments": "ls"}
    listed = {"type": "local_shell_call_output", "call_id": "c2", "output": [{"type": "output_text", "text": "a"}]}
    result = tool_messages(read_response([QUESTION, shell, listed]))[1]
    assert result == ToolMessage("local_shell", "a", "c2", is_result=True)


@pytest.mark.parametrize(
    "request_",
    [
        read_completion(QUESTION),
        read_completion(QUESTION, calling(("c", "f", "{}")), QUESTION),
        read_completion(QUESTION, assistant("hello")),
        read_completion(QUESTION, {"role": "tool", "tool_calls": 7}),
        read_response("hello"),
        read_chat_request(b"{}", COMPLETIONS),
    ],
)
def test_nothing_is_made_up(request_: ChatRequest) -> None:
    assert tool_messages(request_) == ()
