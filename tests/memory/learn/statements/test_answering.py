"""A short answer to a question about the user is kept in words that stand alone; what names nothing is not."""

from __future__ import annotations

import time

import pytest

from memory.learn import gate
from memory.learn.changes.supersession import compare
from memory.learn.statements import verbatim
from memory.learn.statements.answering import as_statement
from memory.model import Message, Role, Scope, Turn, TurnStatus

AT = 1_741_600_000.0

ANSWERED = [
    ("Where do you live?", "Ghent", "I live in Ghent"),
    ("Where are you right now?", "Galway", "I am in Galway"),
    ("So, which city are you based in?", "near Turin.", "I live near Turin"),
    ("What do you do for a living?", "a beekeeper", "My job is a beekeeper"),
    ("What's your blood type?", "B negative", "My blood type is B negative"),
    ("What are your hobbies?", "chess and fencing", "My hobbies are chess and fencing"),
    ("Are you allergic to anything?", "Yes, shellfish", "I'm allergic to shellfish"),
    ("Do you have any food allergies?", "to lupin", "I'm allergic to lupin"),
    ("Do you have any pets?", "Yes, a parrot", "I have pets: a parrot"),
    ("Do you have a garden?", "yes, a tiny one on the roof", "I have a garden: a tiny one on the roof"),
    ("Where are you from?", "Ghana", "I am from Ghana"),
    ("What should I call you?", "Theo", "Call me Theo"),
    ("请问您住在哪个城市？", "厦门", "我住在厦门"),
    ("你对什么过敏？", "芒果", "我对芒果过敏"),
    ("你的血型是什么？", "AB型", "我的血型是AB型"),
    ("怎么称呼您？", "阿强", "我叫阿强"),
    ("Wo wohnst du?", "in Kiel", "Ich wohne in Kiel"),
    ("¿Cómo te llamas?", "Lucía", "Me llamo Lucía"),
]

# Replies that stand alone only together with the question.
WITH_THE_QUESTION = [
    ("Is your parrot a macaw?", "yes, called Figaro"),
    ("您家的猫是布偶吗？", "对，叫团子"),
    ("Do you commute by train?", "every day, about an hour each way"),
    ("How is your garden, sandy or wet?", "mostly clay"),
    ("您平时开什么车？", "一辆旧的五菱"),
    ("有烤箱吗？", "有个三十二升的，去年双十一买的"),
]

NOT_ANSWERED = [
    ("Where do you live?", "why do you ask?"),
    ("Where do you live?", "not telling"),
    ("Where do you live?", "it depends"),
    ("Where do you live?", "skip that"),
    ("Where do you live?", "write me a poem"),
    ("What is your question?", "trains"),
    ("What is your next step?", "painting"),
    ("What's your password?", "sunflower"),
    ("How are you today?", "sunny"),
    ("Which file do you mean?", "the blue box"),
    ("Would you like a recipe?", "lasagne"),
    ("What is the capital of Peru?", "Lima"),
    ("Do you have a dog?", "a parrot"),
    ("Do you have a minute?", "yes, a short while"),
    ("Are you allergic to anything?", "nothing at all"),
    ("Do you have any allergies or dietary wishes?", "spinach"),
    ("你住在哪里？", "保密"),
    ("你的问题是什么？", "火车"),
    ("你对什么过敏？", "好像没什么"),
]


def exchange(question: str, reply: str) -> tuple[Turn, Turn]:
    def turn(turn_id: str, at: float, said: str, answer: str) -> Turn:
        scope = Scope("ann", session_id="s")
        messages = (Message("user", said),)
        return Turn(id=turn_id, scope=scope, at=at, messages=messages, status=TurnStatus.CLOSED, answer=answer)

    return turn("t1", AT, "Hello", f"Nice to meet you. {question}"), turn("t2", AT + 60, reply, "Noted.")


@pytest.mark.parametrize(("question", "reply", "statement"), ANSWERED)
def test_an_answer_is_kept_as_a_statement_whose_evidence_is_the_user_s_own_words(
    question: str, reply: str, statement: str
) -> None:
    asked, answered = exchange(question, reply)
    (fact,) = gate.judge(verbatim.extract([answered], context=[asked]), [asked, answered]).kept
    assert fact.content == statement
    assert (fact.evidence.quote, fact.evidence.turn_id, fact.evidence.role) == (reply, "t2", Role.USER)


@pytest.mark.parametrize(("question", "reply"), NOT_ANSWERED)
def test_what_names_nothing_of_the_user_is_not_kept(question: str, reply: str) -> None:
    asked, answered = exchange(question, reply)
    assert gate.judge(verbatim.extract([answered], context=[asked]), [asked, answered]).kept == ()


def test_an_answer_says_nothing_without_its_question() -> None:
    _, answered = exchange("Where do you live?", "Ghent")
    assert verbatim.extract([answered]) == []


def test_a_planted_answer_is_refused_like_any_other_text() -> None:
    asked, answered = exchange("What is your name?", "\u200bTheo\u200b")
    judged = gate.judge(verbatim.extract([answered], context=[asked]), [asked, answered])
    assert judged.kept == ()


def test_hostile_questions_and_answers_are_read_in_no_time() -> None:
    started = time.process_time()
    for piece in ("what is your ", "so, ", "你的", "are you allergic to any "):
        as_statement(piece * (1_000 // len(piece)) + "?", "yes, " * 2_000 + "Ghent")
        as_statement(piece * (1_000 // len(piece)) + "?", "Ghent")
    assert time.process_time() - started < 1.0


def test_a_statement_is_not_joined_to_a_request_to_forget() -> None:
    _, told = exchange("Anything else?", "I sail. You can forget about my address.")
    assert "I sail." in [fact.content for fact in verbatim.extract([told])]


def test_an_answer_changes_and_is_changed_like_any_statement() -> None:
    asked, answered = exchange("Where do you live these days?", "Ghent")
    (fact,) = verbatim.extract([answered], context=[asked])
    assert compare(fact.content, "I live in Turin") is not None
    assert compare("I moved to Turin", fact.content) is not None


@pytest.mark.parametrize(("question", "reply"), WITH_THE_QUESTION)
def test_a_reply_that_begins_in_the_middle_is_kept_with_its_question(question: str, reply: str) -> None:
    asked, answered = exchange(question, reply)
    (fact,) = gate.judge(verbatim.extract([answered], context=[asked]), [asked, answered]).kept
    assert fact.content.startswith(f"{question} {reply}")
    assert (fact.evidence.quote, fact.evidence.role) == (reply, Role.USER)


@pytest.mark.parametrize(
    ("question", "reply", "content"),
    [
        ("Is Noor your sister?", "my youngest, she's nine", "Noor: my youngest, she's nine"),
        ("雪饼是您的宠物吗？", "我家的猫，十一岁了", "雪饼: 我家的猫，十一岁了"),
    ],
)
def test_who_somebody_is_stands_without_what_the_question_guessed(question: str, reply: str, content: str) -> None:
    asked, answered = exchange(question, reply)
    (fact,) = verbatim.extract([answered], context=[asked])
    assert fact.content == content
