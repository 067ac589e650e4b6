"""Which requests are searched for: the rules that need no embedding, their order, and what filters ahead of us say."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.model import Conversation, Message
from memory.recall.signals.classifier import SignalLabel
from memory.recall.signals.search_decision import JUDGED_CHARACTERS_MAX, decide, decide_early, decide_late
from memory.recall.signals.upstream import (
    NO_SIGNALS,
    UpstreamRule,
    UpstreamSignals,
    read_upstream,
)


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


def test_the_request_after_a_tools_result_is_not_searched_again() -> None:
    said = (Message("user", "what did I tell you about Oslo?"), Message("assistant", ""), Message("tool", "{}"))
    decision = decide(Conversation(messages=said, offers_tools=True))
    assert (decision.search, decision.reason) == (False, "tool_result")


@pytest.mark.parametrize("text", ["", "  \n ", "\u3000"])
def test_a_request_without_words_is_not_searched(text: str) -> None:
    assert decide(talk(text)).reason == "no_question"


def test_a_request_that_merely_offers_tools_is_searched() -> None:
    assert decide(talk("Which window seat did she want", offers_tools=True)).search


REASONS = [
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


@pytest.mark.parametrize(("text", "expected"), REASONS)
def test_words_alone_decide_and_say_why(text: str, expected: str) -> None:
    assert reason(text) == expected


@pytest.mark.parametrize(
    "text", ["thanks, and the address?", "hi, which dentist was it", "谢谢，那家店叫什么", "ok danke, und Bonn?"]
)
def test_a_greeting_with_a_question_behind_it_is_no_greeting(text: str) -> None:
    assert decide(talk(text)).search


def test_yes_after_a_question_of_the_assistants_is_the_task_that_it_asked_about() -> None:
    assert (
        decide(talk("my cellar is damp", "Shall I draft a letter to the landlord?", "yes please")).reason == "consent"
    )
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


def test_a_long_message_is_searched_without_being_judged() -> None:
    assert reason("the report says that " * JUDGED_CHARACTERS_MAX) == "long_message"


@pytest.mark.parametrize("means", list(SignalLabel))
def test_a_label_from_upstream_decides_where_our_own_words_do_not(means: SignalLabel) -> None:
    decision = decide_early(
        talk("Which harbour has the tall crane"), upstream=UpstreamSignals(means, "x-memory-intent")
    )
    assert decision is not None
    assert (decision.search, decision.label) == (means.wants_memory, means)


@pytest.mark.parametrize("means", [SignalLabel.GENERAL_FACT, SignalLabel.GREETING])
def test_a_word_about_the_user_overrides_a_fact_from_upstream(means: SignalLabel) -> None:
    assert decide(talk("What is the capital of my country?"), upstream=UpstreamSignals(means, "x")).search


def test_a_tool_from_upstream_stands() -> None:
    tool = UpstreamSignals(SignalLabel.TOOL, "x")
    assert decide(talk("how many mails do I have"), upstream=tool).reason == "tool"


def test_an_order_from_upstream_is_followed_whatever_the_words_say() -> None:
    assert not decide(talk("what is my name"), upstream=UpstreamSignals("skip", "x")).search
    assert decide(talk("hello"), upstream=UpstreamSignals("search", "x")).search


@pytest.mark.parametrize("order", ["search", "skip"])
def test_an_order_says_nothing_where_no_message_of_the_user_is_to_be_judged(order: str) -> None:
    upstream = UpstreamSignals(order, "x")
    loop = Conversation((Message("user", "what is my name"), Message("assistant", ""), Message("tool", "{}")))
    assert decide(loop, upstream=upstream).reason == "tool_result"
    assert decide(talk("  "), upstream=upstream).reason == "no_question"


def test_doubt_means_search_until_the_classifier_is_trained() -> None:
    decision = decide_late(talk("how many stars are in Orion"), vector=None, classifier=None)
    assert (decision.search, decision.reason) == (True, "question")


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
    ("values", "means"),
    [
        ({"x-disable-router-memory": "true"}, "skip"),
        ({"x-memory-intent": "personal"}, SignalLabel.PERSONAL),
        ({"memory.signals:intent": "search"}, "search"),
    ],
)
def test_what_clients_and_filters_say_is_understood_by_default(values: dict[str, str], means: str) -> None:
    found = read_upstream(values)
    assert (found.means, found.source) == (means, next(iter(values)))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"x-vsr-matched-fact-check": "needs_fact_check", "x-vsr-session-phase": "tool_loop"},  # of its responses
        {"x-vsr-selected-category": "math", "x-vsr-selected-reasoning": "on", "x-selected-model": "qwen3"},
        {"x-disable-router-memory": "false"},
        {"x-memory-intent": "whatever"},
        {"x-memory-intent": ""},
    ],
)
def test_what_says_nothing_about_memory_is_no_signal(values: dict[str, str]) -> None:
    assert read_upstream(values) == NO_SIGNALS


def test_an_order_goes_before_a_label() -> None:
    values = {"x-memory-intent": "general_fact", "memory.signals:intent": "search"}
    assert read_upstream(values).means == "search"


def test_a_rule_cannot_mean_what_nobody_knows() -> None:
    with pytest.raises(AssertionError, match="means must be one of"):
        UpstreamRule("x", (), "maybe")
