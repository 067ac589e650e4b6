"""What the words of two texts share: terms, and times, read as spans of UTC days."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.ranking.lexical import TERMS_PER_TEXT_MAX, fold, stem, terms, unspaced_share
from memory.recall.ranking.temporal import Span, TimeQuestion, time_question


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("painting", "painted"), ("hobbies", "hobby"), ("Anna's", "Anna"), ("running", "runs"),
        ("Katzen", "Katze"), ("gatos", "gato"), ("Café", "cafe"), ("ＡＢＣ１２", "abc12"),
    ],
)  # fmt: skip
def test_forms_of_one_word_meet(one: str, other: str) -> None:
    assert terms(one) == terms(other) != []
    assert all(map(stem, ("is", "as", "ed", "ing", "seed", "bus", "news", "ten", "lily"))), "no stem vanishes"


def test_an_identifier_stays_whole_beside_its_parts() -> None:
    assert "ops-4412" in terms("Ticket OPS-4412 is open")
    assert "petrel_stg" in terms("the database petrel_stg")
    assert "7.3.1" in terms("build 7.3.1")
    assert "7.3.1" not in terms("build 7.3.10")


def test_chinese_gives_single_characters_and_pairs_and_no_language_its_sentence_builders() -> None:
    found = terms("用户的车是白色电动车")
    assert {"车", "白色", "电动", "动车"} <= set(found)
    assert not {"的", "是", "用户"} & set(found)
    assert terms("What is it that you would like me to do with the user?") == []


def test_the_share_of_unspaced_script_is_that_of_its_letters() -> None:
    assert unspaced_share("只有中文") == 1.0
    assert unspaced_share("English only") == 0.0
    assert unspaced_share("1234 !?") == 0.0
    assert 0.0 < unspaced_share("用 R 画图 plots") < 1.0


@given(st.text(max_size=300) | st.just("龙" * 8_000))
def test_any_text_gives_bounded_terms_and_folding_twice_changes_nothing(text: str) -> None:
    found = terms(text)
    assert len(found) <= TERMS_PER_TEXT_MAX
    assert all(found)
    assert terms(fold(text)) == found or fold(fold(text)) != fold(text)


THURSDAY = datetime(2025, 12, 18, 12, tzinfo=UTC).timestamp()


def asked(text: str) -> TimeQuestion:
    return time_question(text, now=THURSDAY)


def span(first: str, last: str) -> Span:
    """From one day to another, the last one left out."""
    return Span(*(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() for day in (first, last)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did Maria donate in December 2023?", span("2023-12-01", "2024-01-01")),
        ("what happened on 7 July, 2023?", span("2023-07-07", "2023-07-08")),
        ("the picture from December 1,2023", span("2023-12-01", "2023-12-02")),
        ("what was planned for 2025-12-10", span("2025-12-10", "2025-12-11")),
        ("what did I decide last week?", span("2025-12-08", "2025-12-15")),
        ("我上周做了什么决定？", span("2025-12-08", "2025-12-15")),
        ("the film I saw two weeks ago", span("2025-12-01", "2025-12-08")),
        ("what did I eat yesterday?", span("2025-12-17", "2025-12-18")),
        ("¿qué hice ayer?", span("2025-12-17", "2025-12-18")),
        ("was habe ich letzten Monat gekauft?", span("2025-11-01", "2025-12-01")),
        ("what did I buy last month", span("2025-11-01", "2025-12-01")),
        ("2023年5月12日我在哪", span("2023-05-12", "2023-05-13")),
        ("去年3月的会议", span("2024-03-01", "2024-04-01")),
        ("when did he join in 2021", span("2021-01-01", "2022-01-01")),
        ("what have I read since May 2025?", Span(span("2025-05-01", "2025-05-02").start, math.inf)),
        ("What did Nate do in June?", span("2022-06-01", "2022-07-01")),  # of any of the last years
        ("What did Nate do in June?", span("2025-06-01", "2025-07-01")),
    ],
)
def test_a_time_in_the_question_becomes_a_span(text: str, expected: Span) -> None:
    assert expected in asked(text).spans
    told = asked("what did Tim say last week, as told on November 6, 2023?")  # counts from that date, and adds nothing
    assert told.spans == (span("2023-11-06", "2023-11-07"),)


@pytest.mark.parametrize(
    "text",
    [
        *("may I ask you something", "we march on", "call Mai later", "room 2025", "my mark is 1999", "月饼好吃吗"),
        *("on February 31, 2023", "2023-13-45", "13月40日", "on 99 May", "in 2099-00"),
    ],
)
def test_an_ordinary_word_and_a_date_that_does_not_exist_are_no_time(text: str) -> None:
    assert asked(text).spans == ()


def test_before_a_date_means_everything_until_then_and_asks_about_the_past() -> None:
    for text in ("what did the shop cost before October?", "十月以前店租多少", "Was kostete der Laden vor Oktober?"):
        question = asked(text)
        assert question.spans == (Span(-math.inf, span("2025-10-01", "2025-10-02").start),)
        assert question.asks_about_past


@pytest.mark.parametrize(
    ("text", "is_past"),
    [
        *((text, True) for text in ("I used to like it, where was it", "我以前住在哪", "wo wohnte ich früher")),
        *((text, False) for text in ("what should I pack before my trip?", "where do I live now?")),
    ],
)
def test_the_past_is_told_from_the_present_without_a_date(text: str, *, is_past: bool) -> None:
    assert asked(text).asks_about_past is is_past


@pytest.mark.parametrize(
    "text", ["When is it?", "how long is the flight", "哪天开会", "¿Cuándo llega?", "Wann fahre ich?"]
)
def test_a_question_for_a_time_is_recognised(text: str) -> None:
    assert asked(text).asks_when
