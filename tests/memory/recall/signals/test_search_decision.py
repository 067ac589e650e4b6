"""Which requests are searched for: rules that need no embedding, what filters ahead of us say, and classifiers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.evaluation.signals import read_signals
from memory.model import Conversation, Message
from memory.model.memories import statement_key
from memory.recall.ranking.lexical import fold
from memory.recall.signals.classifier import QuestionClassifier, QuestionKind, SignalClassifier, SignalLabel
from memory.recall.signals.linear_model import Phrase, features
from memory.recall.signals.phrases import parsed, question_phrases, training_phrases
from memory.recall.signals.search_decision import JUDGED_CHARACTERS_MAX, decide, decide_early, decide_late
from memory.recall.signals.upstream import NO_SIGNALS, UpstreamSignals, read_upstream


def talk(*said: str, offers_tools: bool = False) -> Conversation:
    """User and assistant in turns; the last one is the user's."""
    roles = ["user", "assistant"] * len(said)
    start = (len(said) + 1) % 2
    messages = tuple(Message(role, text) for role, text in zip(roles[start:], said, strict=False))
    return Conversation(messages=messages, offers_tools=offers_tools)


def reason(*said: str) -> str:
    """Why it is decided as it is before any embedding; "" where that is left open."""
    early = decide_early(talk(*said))
    return early.reason if early else ""


REASONS = [
    ("the report says that " * JUDGED_CHARACTERS_MAX, "long_message"),
    # greetings, thanks and acknowledgements
    *((text, "greeting") for text in (
        "hey there!", "Thank you so much for your help", "ok", "Sounds good, bye", "👍👍", "haha",
        "you're a lifesaver", "早上好", "谢谢你！", "好的好的", "明白了，谢谢", "辛苦啦", "666", "buenas noches",
        "muchas gracias", "Vielen Dank!", "Alles klar, bis morgen",
    )),
    # a pronoun that is only mentioned says nothing about the user
    *((text, "") for text in (
        "who wrote 'My Brilliant Friend'", "What is World War I known for?", "is 'we' a pronoun",
        "Who starred in My Left Foot?", "什么是自我实现", "《我的叔叔于勒》是谁写的",
        "How many moons orbit our planet?", "what is soy sauce", "Who wrote Mein Kampf", "Why do we yawn?",
        "how do I reverse a list in Python", "告诉我地球的半径",
    )),
    # what a live tool answers, even where it says "my"
    *((text, "tool") for text in (
        "what's my IP address", "set my alarm for five", "how much battery do I have left", "turn off the hall lamp",
        "roll a die", "run the tests", "open setup.cfg and read it", "remind me to water the roses",
        "search the web for heat pumps", "把空调打开", "现在几点", "设个八点的闹钟", "我的手机还有多少电",
        "¿qué hora es?", "pon una alarma a las ocho", "Wie spät ist es?",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), REASONS, ids=lambda text: text[:40])
def test_words_alone_decide_and_say_why(text: str, expected: str) -> None:
    assert reason(text) == expected


@pytest.mark.parametrize(
    "text", ["thanks, and the address?", "hi, which dentist was it", "谢谢，那家店叫什么", "ok danke, und Bonn?"]
)
def test_a_greeting_with_a_question_behind_it_is_no_greeting(text: str) -> None:
    assert decide(talk(text)).search
    assert decide(talk(text, offers_tools=True)).search, "tools are merely offered"


def test_yes_after_a_question_of_the_assistants_is_the_task_that_it_asked_about() -> None:
    assert decide(talk("my cellar is damp", "Shall I draft a letter?", "yes please")).reason == "consent"
    assert decide(talk("sort these", "Sorted.", "yes please")).reason == "greeting"


@pytest.mark.parametrize(
    "text",
    [
        "what is my blood group", "did we insure the boat", "where should I spend Easter", "who looks after our cat",
        "what do you know about me", "我的血压是多少", "我们的钥匙在谁那里", "我妈喜欢什么花", "¿cuál es mi talla?",
        "wie heißt mein Vermieter",
    ],
)  # fmt: skip
def test_a_word_about_the_user_wants_memory(text: str) -> None:
    assert decide_early(talk(text)).search  # type: ignore[union-attr]


def test_a_follow_up_wants_memory_where_the_talk_before_it_was_about_the_user() -> None:
    assert reason("I am planning my move", "Lovely. What about it?", "And the costs?") == "follow_up"
    assert reason("Where is Malta?", "In the Mediterranean.", "And its population?") == ""


@pytest.mark.parametrize("means", list(SignalLabel))
def test_a_label_from_upstream_decides_where_our_own_words_do_not(means: SignalLabel) -> None:
    upstream = UpstreamSignals(means, "x-memory-intent")
    decision = decide_early(talk("Which harbour has the tall crane"), upstream=upstream)
    assert (decision.search, decision.label) == (means.wants_memory, means)


@pytest.mark.parametrize(
    ("text", "means", "is_searched"),
    [
        ("What is the capital of my country?", SignalLabel.GENERAL_FACT, True),
        ("What is the capital of my country?", SignalLabel.GREETING, True),
        ("how many mails do I have", SignalLabel.TOOL, False),  # which stands
        ("what is my name", "skip", False),  # an order is followed whatever the words say
        ("hello", "search", True),
    ],
)
def test_words_about_the_user_override_labels_and_no_orders(text: str, means: str, *, is_searched: bool) -> None:
    assert decide(talk(text), upstream=UpstreamSignals(means, "x")).search is is_searched


@pytest.mark.parametrize("upstream", [NO_SIGNALS, UpstreamSignals("search", "x"), UpstreamSignals("skip", "x")])
def test_without_a_message_to_be_judged_nothing_is_searched_whatever_is_ordered(upstream: UpstreamSignals) -> None:
    loop = (Message("user", "what did I tell you about Oslo?"), Message("assistant", ""), Message("tool", "{}"))
    decision = decide(Conversation(loop, offers_tools=True), upstream=upstream)
    assert (decision.search, decision.reason) == (False, "tool_result")
    for text in ("", "  \n ", "\u3000"):
        assert decide(talk(text), upstream=upstream).reason == "no_question"


@pytest.mark.soak("judges time")
@pytest.mark.parametrize(
    "text", ["a " * 200, "1+" * 200, "turn on the " * 33, "“" * 400, "read " + "-" * 395, "我" * 400, "hi, " * 100]
)
def test_no_message_holds_a_request_up(text: str) -> None:
    started = time.perf_counter()
    decide(talk(text[:400], text, text[:400]))
    assert time.perf_counter() - started < 0.1  # a tenth of it is usual; a pattern that backtracks takes seconds


@given(st.lists(st.text(max_size=600), min_size=1, max_size=5))
def test_whatever_is_said_there_is_a_decision(said: list[str]) -> None:
    assert decide(talk(*said)).reason


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"x-disable-router-memory": "true"}, UpstreamSignals("skip", "x-disable-router-memory")),
        ({"x-memory-intent": "personal"}, UpstreamSignals("personal", "x-memory-intent")),
        (  # an order goes before a label
            {"x-memory-intent": "general_fact", "memory.signals:intent": "search"},
            UpstreamSignals("search", "memory.signals:intent"),
        ),
        ({}, NO_SIGNALS),
        ({"x-vsr-matched-fact-check": "needs_fact_check", "x-vsr-session-phase": "tool_loop"}, NO_SIGNALS),
        ({"x-vsr-selected-category": "math", "x-selected-model": "qwen3"}, NO_SIGNALS),  # of its responses
        *(({"x-disable-router-memory": "false", "x-memory-intent": said}, NO_SIGNALS) for said in ("whatever", "")),
    ],
)
def test_what_clients_and_filters_say_is_understood(values: dict[str, str], expected: UpstreamSignals) -> None:
    assert read_upstream(values) == expected


# The classifiers: what they learn from, that they learn, and what their scores decide. How good the shipped ones are,
# `tests/memory/evaluation/test_learning_scores.py` says.

PHRASES = training_phrases()
DATA = Path(__file__).resolve().parents[3] / "data"


@pytest.mark.parametrize("file", ["signals.jsonl", "signals_fresh.jsonl"])
def test_no_phrase_is_taught_under_two_labels_and_no_record_of_signals_is(file: str) -> None:
    labels: dict[str, set[SignalLabel]] = {}
    for phrase in PHRASES:
        labels.setdefault(fold(phrase.text), set()).add(phrase.label)
    assert {text: found for text, found in labels.items() if len(found) > 1} == {}
    taught = {phrase.text.casefold() for phrase in PHRASES}
    cases = read_signals(DATA / file)
    assert [case.id for case in cases if case.conversation.last_user_text().casefold() in taught] == []


def test_a_phrase_file_with_an_unknown_section_is_refused_by_line() -> None:
    with pytest.raises(ValueError, match=r"en.txt:2: a section must be one of general_fact.*got 'facts'"):
        parsed("en.txt", "# words\n[facts]\nwho")
    with pytest.raises(ValueError, match=r"en.txt:1: a phrase before the first"):
        parsed("en.txt", "who")


FACT, LIFE = "Which composer wrote the opera Fidelio?", "what did the roofer say about the gutters"


def test_a_score_decides_and_is_told_for_the_receipt() -> None:
    best = {FACT: SignalLabel.GENERAL_FACT, LIFE: SignalLabel.PERSONAL}
    table: Any = SimpleNamespace(scores=lambda text, _: {label: float(label is best[text]) for label in SignalLabel})
    for text, search in ((FACT, False), (LIFE, True)):
        decision = decide_late(talk(text), vector=None, classifier=table)
        assert (decision.search, decision.label and decision.label.wants_memory) == (search, search)
        assert set(decision.scores) == {*SignalLabel, "search"}
    decision = decide_late(talk(FACT), vector=None, classifier=None)
    assert (decision.search, decision.reason) == (True, "question"), "doubt means search until one is trained"


def test_the_embedding_decides_where_words_are_unknown_in_every_script() -> None:
    phrases = [Phrase("alpha beta", SignalLabel.GENERAL_FACT), Phrase("gamma delta", SignalLabel.PERSONAL)]
    vectors = np.eye(2, 4, dtype=np.float32)
    classifier = SignalClassifier.fit(phrases, vectors)
    for unknown in ("epsilon zeta", "天地玄黄"):
        near_fact, near_personal = (classifier.scores(unknown, vector)[SignalLabel.PERSONAL] for vector in vectors)
        assert near_fact < near_personal


def test_phrases_get_back_the_labels_that_they_taught_each_time() -> None:
    some = PHRASES[::40]
    vectors = np.random.default_rng(7).normal(size=(len(some), 8)).astype(np.float32)
    classifier, again = (SignalClassifier.fit(some, vectors) for _ in range(2))
    scores = [classifier.scores(phrase.text, vector) for phrase, vector in zip(some, vectors, strict=True)]
    best = [max(each, key=each.__getitem__) for each in scores]
    assert np.mean([found == phrase.label for found, phrase in zip(best, some, strict=True)]) > 0.8
    np.testing.assert_array_equal(classifier.term_weights, again.term_weights)
    quoted, other = (set(features(f"who sang '{song}'")) for song in ("My Little Pony", "Some Other Song"))
    assert quoted == other, "what is quoted teaches nothing"


FEW = SignalClassifier.fit(PHRASES[::200], None)


@given(st.text(max_size=500))
def test_any_text_has_features_and_a_score(text: str) -> None:
    assert np.isfinite(list(FEW.scores(text, None).values())).all()


def test_a_question_about_a_past_conversation_is_told_from_others_by_what_was_taught() -> None:
    kind = QuestionKind.PAST_TALK
    taught = [Phrase("What did we talk about?", kind), Phrase("Where do I live?", None)]
    classifier = QuestionClassifier.fit([*taught, Phrase("我们聊了什么", kind)], None)
    after = ("what did we TALK about", "where I live", "聊了什么")
    yes, no, chinese = (classifier.scores(text, None)[kind] for text in after)
    assert no < min(yes, chinese)


def test_each_phrase_is_taught_once_every_kind_is_and_no_blind_record_is() -> None:
    taught = question_phrases()
    keys = {statement_key(phrase.text) for phrase in taught}
    assert len(keys) == len(taught)
    assert {phrase.label for phrase in taught} == {None, *QuestionKind}
    for name in ("past_talk_blind", "whole_blind"):
        lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        blind = {statement_key(json.loads(line)["text"]) for line in lines}
        assert len(blind) == len(lines)
        assert not blind & keys
