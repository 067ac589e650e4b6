"""Claims of a model in reply to the assistant: what is taken along of its question, and whose words those are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from reading_parts import a_claim, said

from memory.learn.reading.checks import CheckedAnswer, check_answer
from memory.learn.reading.transcript import transcripts
from memory.model import Act, Claim, Role


def answer_to(question: str, text: str, *items: Any) -> CheckedAnswer:
    """Of a message in reply to what the assistant said."""
    turns = [replace(turn, id="t9") for turn in said(text)]
    (part,) = transcripts(turns, context=said("Hi.", answers=[question]))
    return check_answer(items, part, made_by="a model")


def replied(text: str, question: str, **fields: Any) -> Claim:
    """The only claim in such a message; nothing is wrong with it."""
    found = answer_to(question, text, a_claim(1, **fields))
    assert found.objections == ()
    (placed,) = found.sound
    return placed.claim


@pytest.mark.parametrize("act", ["confirm", "state"])
def test_a_bare_yes_quotes_the_question_and_says_whose_words_they_are(act: str) -> None:
    claim = replied("yes", "Nice. Do you still dive?", act=act)
    assert (claim.act, claim.text) == (Act.STATE, "Do you still dive? yes")
    assert (claim.evidence.quote, claim.evidence.role) == ("Do you still dive?", Role.ASSISTANT)
    unasked = replied("yes", "You still dive.", act="confirm")
    assert (unasked.act, unasked.text) == (Act.CONFIRM, "yes")


@pytest.mark.parametrize("text", ["Nope.", "Nah", "No.", "Nö", "不是"])
@pytest.mark.parametrize("says_no", [True, False])
def test_a_bare_no_denies_what_was_asked_whatever_the_model_says(text: str, *, says_no: bool) -> None:
    claim = replied(text, "Nice. Are you vegetarian?", no=says_no)
    assert (claim.text, claim.is_affirmed) == (f"Are you vegetarian? {text}", False)


def test_a_yes_in_more_words_states_what_the_model_makes_of_it_and_the_question() -> None:
    asked = "Are the twins both vegetarian?"
    fields = {"act": "confirm", "content": "The twins are both vegetarian"}
    claim = replied("Yes, both of them.", asked, **fields)
    assert (claim.act, claim.text, claim.question) == (Act.STATE, fields["content"], asked)
    assert replied("Yes, both of them.", asked, act="confirm").act is Act.CONFIRM


MOST = "What is it that you like most of all?"
COOK = "Since you are diabetic and vegetarian, what do you like to cook?"


@pytest.mark.parametrize(
    ("asked", "text", "content", "stated"),
    [
        (COOK, "I like making pasta.", "", "I like making pasta."),  # not completed: no question is taken along
        ("What is your budget?", "900 euros", "My budget is 900 euros", "My budget is 900 euros"),
        (MOST, "Pasta.", "I adore Zanzibar, Pasta.", f"{MOST} Pasta."),  # its words add something
        (MOST, "面条", "I adore Zanzibar, 面条", f"{MOST} 面条"),
        (COOK, "Pasta.", "I cook Zanzibar pasta", "what do you like to cook? Pasta."),  # only what it asks
    ],
)
def test_a_reply_that_the_model_completes_takes_the_question_along_or_is_marked_with_it(
    asked: str, text: str, content: str, stated: str
) -> None:
    claim = replied(text, asked, content=content)
    assert (claim.text, claim.evidence.quote) == (stated, text)
    assert claim.question == (asked[-len(claim.question) :] if content else "")
    assert bool(claim.question) is bool(content)


def test_each_sentence_of_a_reply_may_take_words_of_the_question_along() -> None:
    text, question = "At most 140 euros. Somewhere quiet. I row.", "What is your budget for the hotel?"
    words = {1: "My budget for the hotel is at most 140 euros", 2: "The hotel is somewhere quiet", 3: "I row in Rome"}
    worded = [a_claim(n, content=content) for n, content in words.items()]
    found = answer_to(f"Is it in Rome? {question}", text, *worded)
    assert [(one.claim.text, one.claim.question) for one in found.sound] == [(words[n], question) for n in (1, 2)]
    assert [one.claim.text for one in found.doubtful] == ["I row."]  # "Rome" does not stand in the question
    spoilt = answer_to(question, text, *(a_claim(n, content="I adore Zanzibar") for n in (1, 2)))
    assert [one.claim.text for one in (*spoilt.sound, *spoilt.doubtful)] == [
        f"{question} At most 140 euros.",  # nothing before it stands
        "Somewhere quiet.",
    ]
