"""The world time of a statement's own date words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.language import LANGUAGES, calendar, language_of
from memory.language.calendar_items import ItemKind, calendar_items, numeric_date
from memory.language.dates import period

WEDNESDAY = "2025-03-12"


def stamp(day: str) -> float:
    return datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC).timestamp()


def meant(text: str, said: str = WEDNESDAY) -> tuple[str, str]:
    holds_from, holds_until = period(text, stamp(said))
    return day_of(holds_from), day_of(holds_until)


def day_of(seconds: float | None) -> str:
    if seconds is None:
        return ""
    assert seconds % 86_400 == 0
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_calendar_keeps_its_own_examples(language: str) -> None:
    for said, text, begin, end in calendar(language).examples:
        assert (meant(text, said), language_of(text)) == ((begin, end), language), text


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("We leave on Friday, 14 March.", "2025-03-14"),
        ("We leave on Saturday, March 14.", "2026-03-14"),
        ("Am Freitag, den 14.3., fahren wir.", "2025-03-14"),
        ("3月14号周五我们出发", "2025-03-14"),
    ],
)
def test_a_weekday_beside_its_date_settles_the_year(text: str, begin: str) -> None:
    assert meant(text) == (begin, "")


def test_a_date_that_is_said_twice_is_one_date() -> None:
    assert meant("Tomorrow, 13 March, I fly.") == ("2025-03-13", "")


def test_the_day_of_a_leap_year_is_the_nearest_one_that_exists() -> None:
    assert meant("I was promoted on 29 February.") == ("2024-02-29", "")


NO_DATES = {
    "an ordinary word or number": (
        "you may say so", "we march on", "I paid 5 march fees", "may 5 of us come", "I last sat down", "room 2025",
        "I work 2015-2019 cases", "version 2.3.10 broke", "I ran 3/4 of a mile", "call 555-1234",
        "in the second week I cried", "I bought 3 last month and 2 yesterday", "Ich mag den Mai", "le doy un 7/10",
        "月饼好吃", "我工作了3年",
    ),
    "what is left open": (
        "tomorrow or on 14 March", "around 14 March", "in early March", "14 March or so", "大概下周三",
        "a mediados de mayo",
    ),
    "a day that does not exist": ("We leave on Monday, 14 March 2025.", "on 31 February 2025", "on 2025-02-30"),
}  # fmt: skip


@pytest.mark.parametrize("text", [text for texts in NO_DATES.values() for text in texts])
def test_what_is_not_certainly_a_day_is_no_date(text: str) -> None:
    assert meant(text) == ("", "")


@pytest.mark.parametrize(
    ("text", "order", "day"),
    [
        ("2025-03-14", "either", (2025, 3, 14)), ("2025-03-14T", "either", (2025, 3, 14)),
        ("2025/3/14", "either", (2025, 3, 14)), ("2025-03", "either", (2025, 3, 0)),
        ("3/22", "either", (0, 3, 22)), ("22/3", "either", (0, 3, 22)), ("4/4", "either", (0, 4, 4)),
        ("3/4", "either", None), ("3/4", "day first", (0, 4, 3)), ("3/4", "month first", (0, 3, 4)),
        ("14.6", "day first", (0, 6, 14)), ("3.14", "either", None), ("14.06.90", "either", (1990, 6, 14)),
        ("14.06.25", "either", (2025, 6, 14)), ("32/1", "day first", None), ("1/2/3/4", "day first", None),
        ("12-05-2025", "either", None),
    ],
)  # fmt: skip
def test_a_date_in_digits_counts_where_it_means_one_day(
    text: str, order: str, day: tuple[int, int, int] | None
) -> None:
    item = numeric_date(text.lower(), order)
    assert (item.day if item else None) == day


@pytest.mark.parametrize(
    ("text", "number"), [("twenty one days", 21), ("二十三天", 23), ("十二天", 12), ("三十天", 30)]
)
def test_number_words_side_by_side_are_one_number(text: str, number: int) -> None:
    language = language_of(text)
    assert [item.number for item in calendar_items(text, language) if item.kind is ItemKind.COUNT] == [number]


WORDS = [phrase for one in LANGUAGES for phrases in calendar(one).preceding.values() for phrase in phrases]
WORDS += [phrase for one in LANGUAGES for names in calendar(one).relative.values() for phrase in names]
WORDS += [name for one in LANGUAGES for names in calendar(one).months + calendar(one).weekdays for name in names]
WORDS += ["next", "last", "14", "31", "2025", "9999", "3/22", "14.6.", "5-3", "0", "days", "ago", "月", "号", ",", "."]


@given(st.lists(st.sampled_from(WORDS), max_size=8), st.floats(-2e9, 4e9))
def test_any_row_of_calendar_words_is_read_and_ends_after_it_begins(row: list[str], said_at: float) -> None:
    holds_from, holds_until = period(" ".join(row), said_at)
    assert holds_from is None or holds_until is None or holds_from < holds_until


@pytest.mark.parametrize("said_at", [253402214400.0, 253402300799.0, 1e15, -62135596800.0, -1e15, float("inf")])
@pytest.mark.parametrize("text", ["until 31 December", "until next year", "since yesterday", "from 3 May until 10 May"])
def test_at_the_ends_of_the_calendar_nothing_is_certain_and_nothing_fails(text: str, said_at: float) -> None:
    assert all(end is None or end < 253402300800.0 for end in period(text, said_at))
