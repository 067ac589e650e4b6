"""What a model is asked to rewrite, and what of its answer is believed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.model import Conversation, Message
from memory.recall.rewrite_prompt import RewriteMode, read_rewrite, rewrite_messages, rewrite_schema, wants_rewrite


def chat(*said: str) -> Conversation:
    """User and assistant by turns, the user last."""
    roles = ["user" if (len(said) - 1 - i) % 2 == 0 else "assistant" for i in range(len(said))]
    return Conversation(tuple(Message(role, text) for role, text in zip(roles, said, strict=True)))


KAYAK = chat("My kayak needs paint.", "Which colour?", "Where is it?")


@pytest.mark.parametrize(
    ("conversation", "mode", "wanted"),
    [
        (KAYAK, RewriteMode.VAGUE, True),
        (KAYAK, RewriteMode.OFF, False),
        (chat("Where is it?"), RewriteMode.VAGUE, False),
        (chat("Hi", "Hello", "Which physiotherapist treated my left knee?"), RewriteMode.VAGUE, False),
        (chat("Hi", "Hello", "Which physiotherapist treated my left knee?"), RewriteMode.ALWAYS, True),
        (chat("它在哪儿", "什么?", "多少钱?"), RewriteMode.VAGUE, True),
        (Conversation((Message("system", "x"),)), RewriteMode.ALWAYS, False),
    ],
)
def test_only_a_vague_question_with_a_chat_before_it_is_worth_a_call(
    conversation: Conversation, mode: RewriteMode, wanted: bool
) -> None:
    assert wants_rewrite(conversation, mode) is wanted


def test_the_prompt_shows_the_last_turns_in_full_and_the_topics_before_them() -> None:
    early = ["I sail a trimaran near Bergen.", "Nice!"]
    conversation = chat(*early, *["small talk", "indeed"] * 3, "And its mast?")
    _, asked = rewrite_messages(conversation, hyde=False)
    assert "Nice!" not in asked.content
    assert "trimaran" in asked.content.splitlines()[1]
    assert asked.content.endswith("The last message:\nAnd its mast?")


def test_the_prompt_is_bounded_and_holds_no_system_text_and_no_tool_traffic() -> None:
    page = "word " * 50_000
    tool = Message("tool", "tool says secret", is_tool_traffic=True)
    system = Message("system", "house rules")
    turns = [m for _ in range(30) for m in (Message("user", page), Message("assistant", page))]
    conversation = Conversation((system, *turns, tool, Message("user", page)))
    asked = rewrite_messages(conversation, hyde=True)
    assert sum(len(m.content) for m in asked) < 6_000
    assert "secret" not in asked[1].content
    assert "house rules" not in asked[1].content


def test_hyde_asks_for_the_expected_memory_too() -> None:
    assert "memory" in rewrite_schema(hyde=True)["required"]
    assert "memory" not in rewrite_schema(hyde=False)["properties"]
    answer = json.dumps({"query": "Where is the kayak?", "memory": "The kayak is stored somewhere."})
    plain, hyde = (read_rewrite(answer, KAYAK, hyde=on) for on in (False, True))
    assert plain is not None
    assert hyde is not None
    assert plain.text == "Where is the kayak?"
    assert hyde.text == "Where is the kayak? The kayak is stored somewhere."


@pytest.mark.parametrize(
    "answer",
    [
        '{"query": "Where is the kayak?"}',
        '```json\n{"query": "Where is the kayak?"}\n```',
        '<think>{"query": "no"}</think>{"query": "Where is the kayak?"}',
        '{"query": "  \\"Where\\n\\tis the\\u200b kayak?\\" "}',
    ],
    ids=["plain", "fenced", "thought aloud", "dirty"],
)
def test_a_good_answer_becomes_one_clean_line(answer: str) -> None:
    rewritten = read_rewrite(answer, KAYAK, hyde=False)
    assert rewritten is not None
    assert rewritten.query == "Where is the kayak?"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Where is the kayak?",
        "{}",
        '{"query": ""}',
        '{"query": 5}',
        '{"query": ["kayak"]}',
        '{"query": "I cannot help with that."}',
        '{"query": "' + "kayak " * 100 + '"}',
        '{"query": "Where is the kay',
        '<think>{"query": "kayak"}',
        "{" * 100_000,
        '{"query": "\ud83d kayak"}',
        '{"query": "\\ud83d kayak"}',
    ],
    ids=lambda answer: answer[:24].encode(errors="replace").decode() or "empty",
)
def test_junk_is_ignored(answer: str) -> None:
    assert read_rewrite(answer, KAYAK, hyde=False) is None


@given(st.text())
def test_whatever_a_query_holds_comes_back_as_one_printable_bounded_line(text: str) -> None:
    rewritten = read_rewrite(json.dumps({"query": f"kayak {text}"}), KAYAK, hyde=False)
    if rewritten is not None:
        assert len(rewritten.query) <= 300
        assert rewritten.query.isprintable()
        rewritten.query.encode()
