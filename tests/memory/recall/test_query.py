"""What is looked for: the question, its subject where it is vague, or what a model makes of both.

Never more than a model can read, and of its answer never more than one clean line about what was said.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.model import Conversation, Message
from memory.recall import query as recall_query
from memory.recall.query import RewriteMode, build_query, read_rewrite, rewrite_messages, rewrite_schema, wants_rewrite


def asked(*texts: str) -> str:
    return build_query(Conversation(tuple(Message("user", text) for text in texts))).text


PARKED = "Where did I park my bicycle yesterday?"
PAINT, FLY = "My kayak needs a coat of paint.", "I want to fly to Hawaii in May."
RYE = "Let us speak of rye bread with caraway."


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        *(
            ([FLY, vague], f"want fly Hawaii May {vague}")
            for vague in ("And when was that?", "多少？", "What did we call him?")
        ),
        (["Let us talk.", PARKED], PARKED),  # it stands alone
        # past thanks and other vague words, to what names something; but three messages, and no further
        ([PAINT, "Green I guess", "thanks!", "Where is it?"], "kayak needs coat paint Green guess Where is it?"),
        ([PAINT, "thanks", "ok", "great", "Where is it?"], "Where is it?"),
        ([PAINT, RYE, "How much?"], "speak rye bread caraway How much?"),  # no further than the nearest subject
        (["我想陪奶奶去医院", "嗯", "是几号？"], "陪奶奶去医院 是几号？"),  # without what only builds the sentence
        (["padding " * 5_000 + "the Hawaii trip", "How much?"], "padding Hawaii trip How much?"),
    ],
)
def test_a_vague_question_borrows_what_it_refers_to(said: list[str], expected: str) -> None:
    assert asked(*said) == expected


def test_where_the_user_agrees_the_assistant_s_question_is_the_subject() -> None:
    said = Message("user", "my music lessons on Tuesdays"), Message("assistant", "I see. Violin with your teacher?")
    agreed, refused = ((*said, Message("user", reply), Message("user", "When?")) for reply in ("yes", RYE))
    assert build_query(Conversation(agreed)).text.endswith("Violin teacher When?")
    assert "Violin" not in build_query(Conversation(refused)).text


def test_a_tool_s_call_and_its_result_are_no_subject() -> None:
    called = Message("assistant", "weather in Dorset", is_tool_traffic=True)
    loop = called, replace(called, role="tool", content="rain")
    said = Message("user", "my kayak needs a new paddle"), *loop, Message("user", "When?")
    assert build_query(Conversation(said)).text == "kayak needs new paddle When?"


def test_of_a_long_message_the_end_is_kept_where_the_question_stands_and_a_vague_one_borrows_few_words() -> None:
    asks = "Where is my boat moored this winter?"
    query = asked("The subject is sailing. " + "padding " * 5_000 + asks)
    assert len(query) <= recall_query.QUERY_CHARACTERS_MAX + 1
    assert query.startswith("The subject is sailing.")
    assert query.endswith(asks)
    assert len(asked(" ".join(f"word{n}" for n in range(9_000)), "How much?")) < 200
    assert build_query(Conversation((Message("assistant", "Hello."),))).text == "", "without a question"


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
def test_which_questions_are_worth_a_call(conversation: Conversation, mode: RewriteMode, wanted: bool) -> None:
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
    asked = rewrite_messages(Conversation((system, *turns, tool, Message("user", page))), hyde=True)
    assert sum(len(m.content) for m in asked) < 6_000
    assert not any(words in asked[1].content for words in ("secret", "house rules"))


def test_hyde_asks_for_the_expected_memory_too() -> None:
    assert "memory" in rewrite_schema(hyde=True)["required"]
    assert "memory" not in rewrite_schema(hyde=False)["properties"]
    answer = json.dumps({"query": "Where is the kayak?", "memory": "The kayak is stored somewhere."})
    assert read_rewrite(answer, KAYAK, hyde=False).text == "Where is the kayak?"
    assert read_rewrite(answer, KAYAK, hyde=True).text == "Where is the kayak? The kayak is stored somewhere."


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
    assert read_rewrite(answer, KAYAK, hyde=False).query == "Where is the kayak?"


@pytest.mark.parametrize(
    "answer",
    [
        "", "Where is the kayak?", "{}", '{"query": ""}', '{"query": 5}', '{"query": ["kayak"]}',
        '{"query": "I cannot help with that."}', json.dumps({"query": "kayak " * 100}),
        '{"query": "Where is the kay', '<think>{"query": "kayak"}', "{" * 2_000, '{"query": "\ud83d kayak"}',
        '{"query": "\\ud83d kayak"}',
    ],
    ids=lambda answer: answer[:24].encode(errors="replace").decode() or "empty",
)  # fmt: skip
def test_junk_is_ignored(answer: str) -> None:
    assert read_rewrite(answer, KAYAK, hyde=False) is None


@given(st.text())
def test_whatever_a_query_holds_comes_back_as_one_printable_bounded_line(text: str) -> None:
    rewritten = read_rewrite(json.dumps({"query": f"kayak {text}"}), KAYAK, hyde=False)
    if rewritten is not None:
        assert len(rewritten.query) <= 300
        assert rewritten.query.isprintable()
        rewritten.query.encode()
