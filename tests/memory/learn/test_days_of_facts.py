"""A memory says which days its words mean: tomorrow cannot be understood alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from claims import claim

from memory.language.dates import period
from memory.learn.window_reading import dated
from memory.model import Act
from memory.model.days import period_text, with_days, without_days

SAID_AT = datetime(2025, 6, 5, 12, tzinfo=UTC).timestamp()


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("I fly to Rome tomorrow", "2025-06-06"),
        ("We moved last week", "2025-05-26 to 2025-06-01"),
        ("I gave up dairy in January", "2025-01"),
        ("明年五月考注会", "2026-05"),
        ("My lease runs until May", "until 2025-05-31"),
        ("Since 20 February I sing", "from 2025-02-20"),
    ],
)
def test_the_days_that_words_mean_stand_behind_them(text: str, days: str) -> None:
    holds_from, holds_until = period(text, SAID_AT)
    read = dated(claim(text, said_at=SAID_AT, holds_from=holds_from, holds_until=holds_until))
    assert read.text == f"{text} ({days})"
    assert without_days(read.text) == text
    assert read.evidence.quote == text


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "Born on 3 May 2020"},
        {"text": "My birthday is on 3 May", "attribute": "birthday"},
        {"text": "No, on 3 May", "act": Act.CORRECT, "leans": True},
        {"text": "Long ago", "holds_from": -1e14},
    ],
)
def test_no_days_where_they_are_said_come_again_or_are_none(fields: dict[str, Any]) -> None:
    one = replace(claim("I", said_at=SAID_AT), **{"holds_from": day("2020-05-03"), **fields})
    assert dated(one).text == fields["text"]


def test_a_period_is_as_long_as_it_is() -> None:
    assert period_text(None, None) == ""
    assert period_text(day("2025-02-01"), day("2025-03-01")) == "2025-02"
    assert period_text(day("2025-02-02"), day("2025-03-01")) == "2025-02-02 to 2025-02-28"
    assert period_text(day("2025-01-01"), day("2026-01-01")) == "2025"
    assert with_days("I sing", "") == "I sing"
    assert without_days("I sing (in 2025)") == "I sing (in 2025)"
