"""What is looked for: the question itself, its subject where it is vague, and never more than the model can read."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_embedder import own_embedder

from memory.evaluation.recall import evaluate_recall
from memory.model import Conversation, Message
from memory.recall.query import QUERY_CHARACTERS_MAX, build_query, is_vague, topic_words

VAGUE_QUESTIONS = Path(__file__).parents[2] / "data" / "vague_questions.jsonl"


def asked(*texts: str) -> str:
    messages = [Message("user", text) for text in texts]
    return build_query(Conversation(tuple(messages))).text


def test_a_question_that_stands_alone_is_taken_as_it_is() -> None:
    assert asked("Let us talk.", "Where did I park my bicycle yesterday?") == "Where did I park my bicycle yesterday?"


@pytest.mark.parametrize("vague", ["How much?", "And when was that?", "多少？", "What did we call him?"])
def test_a_vague_question_borrows_the_topic_words_of_the_message_before_it(vague: str) -> None:
    assert is_vague(vague)
    assert asked("I want to fly to Hawaii in May.", vague) == f"want fly Hawaii May {vague}"


def test_it_looks_back_past_thanks_and_other_vague_words_to_what_names_something() -> None:
    assert asked("My kayak needs a coat of paint.", "Green I guess", "thanks!", "Where is it?") == (
        "kayak needs coat paint Green guess Where is it?"
    )


def test_it_looks_back_three_messages_and_no_further() -> None:
    assert asked("My kayak needs a coat of paint.", "thanks", "ok", "great", "Where is it?") == "Where is it?"


def test_what_was_named_before_the_nearest_subject_is_left_alone() -> None:
    assert "kayak" not in asked("My kayak needs paint.", "Let us speak of rye bread with caraway.", "How much?")


def test_where_the_user_agrees_the_assistant_s_question_is_the_subject() -> None:
    said = (
        Message("user", "my music lessons on Tuesdays"),
        Message("assistant", "I see. Violin with your teacher?"),
        Message("user", "yes"),
    )
    assert build_query(Conversation((*said, Message("user", "When?")))).text.endswith("Violin teacher When?")
    refused = (*said[:2], Message("user", "Let us speak of rye bread with caraway."), Message("user", "When?"))
    assert "Violin" not in build_query(Conversation(refused)).text


def test_a_tool_s_call_and_its_result_are_no_subject() -> None:
    said = (
        Message("user", "my kayak needs a new paddle"),
        Message("assistant", "weather in Dorset", is_tool_traffic=True),
        Message("tool", "rain", is_tool_traffic=True),
    )
    assert build_query(Conversation((*said, Message("user", "When?")))).text == "kayak needs new paddle When?"


def test_chinese_gives_its_words_without_what_only_builds_the_sentence() -> None:
    assert topic_words("我想陪奶奶去医院") == ["陪奶奶去医院"]
    assert asked("我想陪奶奶去医院", "嗯", "是几号？") == "陪奶奶去医院 是几号？"


async def test_follow_ups_in_three_languages_find_what_they_lean_on() -> None:
    """With the real model. Written before the rules above; with the last message alone, 4 of these 12 are found."""
    async with own_embedder() as embedder:
        found = await evaluate_recall(VAGUE_QUESTIONS, embedder)
    assert found["all"]["recall@5"] == 1.0


def test_the_end_of_a_long_message_is_kept_where_the_question_stands() -> None:
    text = "The subject is sailing. " + "padding " * 5_000 + "Where is my boat moored this winter?"
    query = asked(text)
    assert len(query) <= QUERY_CHARACTERS_MAX + 1
    assert query.startswith("The subject is sailing.")
    assert query.endswith("Where is my boat moored this winter?")


def test_a_vague_question_survives_a_long_message_before_it() -> None:
    query = asked("padding " * 5_000 + "the Hawaii trip", "How much?")
    assert query == "padding Hawaii trip How much?"
    assert len(asked(" ".join(f"word{n}" for n in range(9_000)), "How much?")) < 200


def test_without_a_question_there_is_nothing_to_look_for() -> None:
    assert build_query(Conversation((Message("assistant", "Hello."),))).text == ""
