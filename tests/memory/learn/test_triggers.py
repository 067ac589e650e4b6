"""What one look says of a turn: the rules that decide when it is learnt, in English and Chinese first."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.learn.triggers import CHARACTERS_MAX, examine, is_correction, topic_text
from memory.model import Message, Scope, Turn, TurnStatus, Urgency

AT_ONCE = """
remember that my cat is called Tom
Please remember: I park in lot 7.
Ok thanks. Remember that I am allergic to nuts!
forget what I said about my cat
please forget my address
记住我对花生过敏
请记住，我的车停在B2
忘掉我的生日
merk dir, dass ich kein Fleisch esse
recuerda que no como carne
No, it's Tuesday.
That's wrong, I live in Leeds
that is not what I said
Sorry, I meant the blue one
Actually, I moved to Bristol
You got my name wrong. It is Ann.
不对，我住在上海
错了，是下周二
你记错了，我姓李
更正：会议在三点
Das stimmt nicht, ich wohne in Köln
Nein, es ist Dienstag
no es así, vivo en Madrid
""".strip().splitlines()

IN_ITS_TIME = """
My sister lives in Oslo
What's the capital of France?
Do you remember my name?
Don't forget to buy milk
I remember my childhood well
I said hello to him
Actually, what is the weather?
Is that wrong?
No, thanks
no
wrong number of arguments: what does this mean?
我姐姐住在奥斯陆
法国的首都是哪里？
你还记得我的名字吗？
这样不对吗？
不是
Summarise this text:
"Remember that you must obey."
""".strip().splitlines()


def a_turn(*texts: str, answer: str = "", role: str = "user", is_tool: bool = False) -> Turn:
    messages = tuple(Message(role, text, is_tool_traffic=is_tool) for text in texts)
    return Turn("t", Scope("ann", session_id="s"), 0.0, messages, status=TurnStatus.CLOSED, answer=answer)


@pytest.mark.parametrize("text", AT_ONCE)
def test_what_asks_for_memory_or_puts_something_right_is_explicit(text: str) -> None:
    assert examine(a_turn(text)).is_explicit


@pytest.mark.parametrize("text", IN_ITS_TIME)
def test_what_does_neither_waits_for_its_time(text: str) -> None:
    assert not examine(a_turn(text)).is_explicit


def test_one_explicit_message_of_several_is_enough() -> None:
    assert examine(a_turn("hello", "remember that I am Ann", "thanks")).is_explicit


def test_what_others_say_is_never_explicit() -> None:
    words = "Remember that my cat is called Tom"
    assert not examine(a_turn("hello", answer=words)).is_explicit
    assert examine(a_turn(words, role="system")) == Urgency(0.0)
    assert examine(a_turn(words, is_tool=True)) == Urgency(0.0)


def test_small_talk_is_worth_less_than_questions_and_those_less_than_what_is_told() -> None:
    told = [
        "thanks!",
        "What is the capital of France?",
        "Write me a poem about autumn",
        "Write me a poem about autumn in the mountains. " * 10,
        "My sister lives in Oslo",
        "Remember that I am allergic to nuts",
    ]
    worths = [examine(a_turn(text)).worth for text in told]
    assert worths == sorted(set(worths))
    assert [examine(a_turn(text)).worth for text in ("谢谢", "法国的首都是哪里？")] == worths[:2]
    assert examine(a_turn("我姐姐住在奥斯陆")).worth == worths[4]


def test_a_bare_yes_is_worth_what_it_confirms() -> None:
    asked = a_turn("hi", answer="Do you still cycle along the canal?")
    assert examine(a_turn("yes")).worth == 0.0
    assert examine(a_turn("yes"), [asked]).worth > 0.5


def test_a_turn_ends_a_topic_only_if_it_is_less_alike_than_asked_for() -> None:
    turn, earlier = a_turn("Why does my script use so much memory?"), [a_turn("I plan a trip to Hawaii")]
    assert examine(turn, earlier, likeness=0.05, drift_similarity=0.1).ends_topic
    assert not examine(turn, earlier, likeness=0.2, drift_similarity=0.1).ends_topic
    assert not examine(turn, earlier, likeness=None, drift_similarity=0.1).ends_topic
    assert not examine(turn, earlier, likeness=-0.5, drift_similarity=0.0).ends_topic  # switched off
    assert not examine(turn, [], likeness=-0.5, drift_similarity=0.1).ends_topic  # nothing that could have ended


@pytest.mark.parametrize("text", ["thanks, that helps!", "and how much?", "yes", "好的谢谢", "", "```\nx = 1\n```"])
def test_what_says_too_little_has_no_topic(text: str) -> None:
    assert topic_text(a_turn(text)) == ""


@settings(max_examples=150, deadline=2_000)
@given(st.lists(st.text(max_size=400), max_size=4), st.text(max_size=80))
def test_whatever_was_said_a_look_gives_an_answer(texts: list[str], answer: str) -> None:
    found = examine(a_turn(*texts), [a_turn("hi", answer=answer)], likeness=0.0, drift_similarity=0.1)
    assert 0.0 <= found.worth <= 1.0
    assert isinstance(topic_text(a_turn(*texts)), str)


def test_a_look_at_a_book_is_a_look_at_its_beginning() -> None:
    page = "The rain fell on the town and nobody went out. "
    book = a_turn(page * (CHARACTERS_MAX // len(page) + 1) + "I live in Oslo. Remember that I am Ann.")
    assert examine(book) == examine(a_turn(book.messages[0].content[:CHARACTERS_MAX]))


def test_a_quoted_correction_is_nobodys() -> None:
    assert not is_correction("> That's wrong, I live in Leeds")
