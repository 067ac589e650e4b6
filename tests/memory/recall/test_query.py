"""What is looked for: the question itself, its subject where it is vague, and never more than the model can read."""

from __future__ import annotations

import pytest

from memory.model import Conversation, Message
from memory.recall.query import QUERY_CHARACTERS_MAX, build_query, is_vague


def asked(*texts: str) -> str:
    messages = [Message("user", text) for text in texts]
    return build_query(Conversation(tuple(messages))).text


def test_a_question_that_stands_alone_is_taken_as_it_is() -> None:
    assert asked("Let us talk.", "Where did I park my bicycle yesterday?") == "Where did I park my bicycle yesterday?"


@pytest.mark.parametrize("vague", ["How much?", "And when was that?", "多少？"])
def test_a_vague_question_borrows_its_subject(vague: str) -> None:
    assert is_vague(vague)
    assert asked("I want to fly to Hawaii in May.", vague) == f"I want to fly to Hawaii in May. {vague}"


def test_the_end_of_a_long_message_is_kept_where_the_question_stands() -> None:
    text = "The subject is sailing. " + "padding " * 5_000 + "Where is my boat moored this winter?"
    query = asked(text)
    assert len(query) <= QUERY_CHARACTERS_MAX + 1
    assert query.startswith("The subject is sailing.")
    assert query.endswith("Where is my boat moored this winter?")


def test_a_vague_question_survives_a_long_message_before_it() -> None:
    query = asked("padding " * 5_000 + "the Hawaii trip", "How much?")
    assert query.endswith("the Hawaii trip How much?")
    assert len(query) <= QUERY_CHARACTERS_MAX


def test_without_a_question_there_is_nothing_to_look_for() -> None:
    assert build_query(Conversation((Message("assistant", "Hello."),))).text == ""
