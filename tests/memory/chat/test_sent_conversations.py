"""By which keys a conversation is recognised, and what of it is taken along to be filled in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.chat.completions import read_chat_request
from memory.chat.responses import RESPONSES
from memory.chat.sent_conversations import sent_conversation
from memory.model import EARLIER_BYTES_MAX, EARLIER_EXCHANGES_MAX, Message, Scope, SentConversation

ANN = Scope("ann")
READ_SECONDS_MAX = 1.0  # on a busy machine; it takes some 20 ms


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def model(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": {}}]}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "rain"}


def read(*messages: dict[str, Any], scope: Scope = ANN) -> SentConversation:
    found = sent_conversation(scope, read_chat_request(json.dumps({"messages": messages}).encode()))
    assert found is not None
    return found


def test_a_request_knows_the_key_that_the_request_before_it_had() -> None:
    first = read(user("a"))
    second = read(user("a"), model("b"), user("c"))
    third = read(user("a"), model("b"), user("c"), model("d"), user("e"))
    assert [exchange.key for exchange in second.earlier] == list(first.keys)
    assert [exchange.key for exchange in third.earlier] == [*first.keys, *second.keys]
    assert third.earlier[1].said == (Message("user", "c"),)
    assert [exchange.answer for exchange in third.earlier] == ["b", "d"]


@pytest.mark.parametrize(
    "same",
    [
        [{"role": "system", "content": "Today is Monday."}, user("a"), model("b"), user("c")],
        [user("a"), CALL, RESULT, model("b"), user("c")],
        [user("a"), model("b"), {"role": "system", "content": "a note"}, user("c")],
        [{"role": "user", "content": [{"type": "text", "text": "a"}]}, model("b"), user("c")],
        [user("a"), model("b"), user(" "), user("c")],
    ],
)
def test_system_messages_tool_traffic_and_notation_do_not_count(same: list[dict[str, Any]]) -> None:
    assert read(*same).keys[-1] == read(user("a"), model("b"), user("c")).keys[-1]


@pytest.mark.parametrize(
    "other",
    [
        [user("A"), model("b"), user("c")],
        [user("a"), model("B"), user("c")],
        [user("ab"), user("c")],
        [user("a"), user("b"), user("c")],
        [user("a"), user("c")],
        [user("c")],
    ],
)
def test_other_words_give_another_key(other: list[dict[str, Any]]) -> None:
    assert read(*other).keys[-1] != read(user("a"), model("b"), user("c")).keys[-1]


def test_the_same_words_of_another_user_project_or_agent_have_another_key() -> None:
    scopes = [ANN, Scope("bob"), Scope("ann", "p"), Scope("ann", agent_id="p"), Scope("annp")]
    assert len({read(user("a"), scope=scope).keys for scope in scopes}) == len(scopes)
    assert read(user("a"), scope=Scope("ann", session_id="s")) == read(user("a"))


def test_a_greeting_of_the_assistant_is_no_exchange() -> None:
    assert read(model("Hello!"), user("a")).earlier == ()


def test_a_message_during_a_tool_loop_is_a_turn_of_its_own() -> None:
    found = read(user("a"), CALL, RESULT, user("b"))
    assert [(one.said, one.answer) for one in found.earlier] == [((Message("user", "a"),), "")]
    assert len(found.keys) == 1


def test_all_new_messages_have_a_key_each() -> None:
    assert read(user("a"), user("b")).keys == (*read(user("a")).keys, *read(user("a"), user("b")).keys[1:])


@pytest.mark.parametrize("messages", [[user("a"), model("b")], [user(" ")], [user("a"), CALL, RESULT]])
def test_a_request_without_news_has_none(messages: list[dict[str, Any]]) -> None:
    assert sent_conversation(ANN, read_chat_request(json.dumps({"messages": messages}).encode())) is None


def test_the_same_words_in_two_chains_of_responses_have_different_keys() -> None:
    keys = set()
    for chain in ({}, {"previous_response_id": "r1"}, {"previous_response_id": "r2"}, {"conversation": "r3"}):
        found = sent_conversation(ANN, read_chat_request(json.dumps({"input": "a", **chain}).encode(), RESPONSES))
        assert found is not None
        keys.add(found.keys)
    assert len(keys) == 4


def test_a_history_of_ten_thousand_messages_is_read_in_time_and_bounded() -> None:
    talk = [one for number in range(5_000) for one in (user(f"question {number}"), model(f"answer {number}"))]
    request = read_chat_request(json.dumps({"messages": [*talk, user("last")]}).encode())
    found = sent_conversation(ANN, request)
    assert found is not None
    assert len(found.earlier) == EARLIER_EXCHANGES_MAX
    assert found.earlier[-1].said == (Message("user", "question 4999"),)


def test_texts_are_taken_along_up_to_a_limit_newest_first() -> None:
    long = "x" * (EARLIER_BYTES_MAX // 2)
    found = read(user("a"), model("b"), user(long), model(long), user("c"), model("d"), user("e"))
    assert [bool(exchange.said) for exchange in found.earlier] == [False, False, True]
    assert len({exchange.key for exchange in found.earlier}) == 3


@given(st.lists(st.sampled_from([user("a"), model("b"), CALL, RESULT, user(""), {"role": "system", "content": "s"}])))
def test_every_prefix_that_was_a_request_is_recognised(messages: list[dict[str, Any]]) -> None:
    """Whatever the order: what a request adds, the next one finds."""
    messages = [*messages, user("new")]
    now = read(*messages)
    later = read(*messages, model("answer"), user("later"))
    assert later.earlier[-1].key == now.keys[-1]
    assert later.earlier[:-1] == now.earlier
