"""What one look says of a turn, from what the trained reader read in it: when it is learnt, and what is shed first."""

from __future__ import annotations

import pytest
from claims import claim
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.learn.triggers import CHARACTERS_MAX, MESSAGES_MAX, WORTH_NOTHING, examine, shortened, topic_text
from memory.model import Act, Claim, Message, Scope, Turn, TurnStatus

NOTHING: tuple[Claim, ...] = ()


def a_turn(*texts: str, answer: str = "", role: str = "user", is_tool: bool = False) -> Turn:
    messages = tuple(Message(role, text, is_tool_traffic=is_tool) for text in texts)
    return Turn("t1", Scope("ann", session_id="s"), 0.0, messages, status=TurnStatus.CLOSED, answer=answer)


TURN = a_turn("Why does my script use so much memory?")


@pytest.mark.parametrize(
    ("act", "is_explicit", "asks_memory"),
    [
        (Act.REMEMBER, True, True),
        (Act.FORGET, True, True),
        (Act.WITHHOLD, True, True),
        (Act.CORRECT, True, False),
        (Act.STATE, False, False),
        (Act.WISH, False, False),
        (Act.CONFIRM, False, False),
        (Act.INSTRUCT, False, False),
    ],
)
def test_what_asks_for_memory_or_puts_something_right_is_explicit(
    act: Act, *, is_explicit: bool, asks_memory: bool
) -> None:
    found = examine(TURN, [claim("something", act=act)])
    assert (found.is_explicit, found.asks_memory) == (is_explicit, asks_memory)


def test_one_explicit_claim_of_several_is_enough() -> None:
    assert examine(TURN, [claim("I am Ann"), claim("remember that", act=Act.REMEMBER), claim("I dive")]).is_explicit


def test_a_claim_of_which_the_reader_is_not_sure_changes_nothing() -> None:
    assert examine(TURN, [claim("remember that", act=Act.REMEMBER, confidence=0.6)]) == examine(TURN, NOTHING)


def test_what_was_said_in_another_turn_changes_nothing() -> None:
    assert examine(TURN, [claim("remember that", act=Act.REMEMBER, turn="t0")]) == examine(TURN, NOTHING)


def test_a_turn_is_worth_as_much_as_its_weightiest_statement_and_small_talk_next_to_nothing() -> None:
    of_nothing = examine(TURN, NOTHING).worth
    of_little = examine(TURN, [claim("I like tea", importance=0.2)]).worth
    of_much = examine(TURN, [claim("I like tea", importance=0.2), claim("I am allergic", importance=0.8)]).worth
    assert of_nothing == WORTH_NOTHING < of_little < of_much <= 1.0


def test_what_leaves_no_memory_is_worth_no_more_than_small_talk() -> None:
    assert examine(TURN, [claim("forget my cat", act=Act.FORGET, importance=1.0)]).worth == WORTH_NOTHING


def test_a_turn_ends_a_topic_only_if_it_is_less_alike_than_asked_for() -> None:
    def ends_topic(likeness: float | None, drift_similarity: float, *, has_earlier: bool = True) -> bool:
        return examine(
            TURN, NOTHING, has_earlier=has_earlier, likeness=likeness, drift_similarity=drift_similarity
        ).ends_topic

    assert ends_topic(0.05, 0.1)
    assert not ends_topic(0.2, 0.1)
    assert not ends_topic(None, 0.1)
    assert not ends_topic(-0.5, 0.0)  # switched off
    assert not ends_topic(-0.5, 0.1, has_earlier=False)  # nothing that could have ended


@pytest.mark.parametrize("text", ["thanks, that helps!", "and how much?", "yes", "好的谢谢", "", "```\nx = 1\n```"])
def test_what_says_too_little_has_no_topic(text: str) -> None:
    assert topic_text(a_turn(text)) == ""


def test_only_the_users_own_messages_are_looked_at() -> None:
    words = "Remember that my cat is called Tom"
    for turn in (a_turn(words, role="system"), a_turn(words, is_tool=True)):
        assert shortened(turn).messages == ()
    assert [message.content for message in shortened(a_turn("hello", answer=words)).messages] == ["hello"]


def test_a_look_at_a_book_is_a_look_at_its_beginning() -> None:
    book = a_turn("The rain fell on the town and nobody went out. " * CHARACTERS_MAX)
    assert [len(message.content) for message in shortened(book).messages] == [CHARACTERS_MAX]


def test_of_many_messages_the_last_ones_are_looked_at() -> None:
    turn = shortened(a_turn(*(f"message {number}" for number in range(MESSAGES_MAX + 5))))
    assert [message.content for message in turn.messages] == [f"message {n}" for n in range(5, MESSAGES_MAX + 5)]


@settings(max_examples=100, deadline=2_000)
@given(st.lists(st.text(max_size=400), max_size=4), st.floats(0, 1), st.floats(0, 1))
def test_whatever_was_said_a_look_gives_an_answer(texts: list[str], confidence: float, importance: float) -> None:
    claims = [claim(text, confidence=confidence, importance=importance) for text in texts]
    found = examine(a_turn(*texts), claims, has_earlier=True, likeness=0.0, drift_similarity=0.1)
    assert 0.0 <= found.worth <= 1.0
    assert isinstance(topic_text(a_turn(*texts)), str)
