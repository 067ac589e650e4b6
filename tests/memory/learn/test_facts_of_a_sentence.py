"""Facts of one sentence share it as their evidence, and are forgotten one by one: no word of one stays with another.

A memory says which days its words mean: "tomorrow" cannot be understood alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from claims import claim
from learning_parts import Bench
from plain_reader import FactReader
from turn_logs import Process

from memory.language.dates import period
from memory.learn.window_reading import dated
from memory.model import Act, Claim, Turn
from memory.model.days import DAY_SECONDS, day_text, period_text, with_days, without_days

HOME, BEES = "I live in Leeds", "I keep bees"
BOTH = f"{HOME} and {BEES}."


class DatedReader(FactReader):
    """Also says when a fact holds."""

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        claims = await super().read(turns, context=context)
        return [replace(one, holds_from=period(one.text, one.said_at)[0]) for one in claims]


async def learn(bench: Bench, process: Process, *said: str) -> None:
    await bench.learn(process, *said, worker=bench.worker(process, reader=DatedReader()))


@pytest.mark.parametrize("has_sets", [True, False])
async def test_what_is_forgotten_is_in_no_other_fact_of_its_sentence(
    bench: Bench, process: Process, *, has_sets: bool
) -> None:
    bench.has_sets = has_sets
    await learn(bench, process, BOTH)
    assert await bench.contents() == [BEES, HOME]
    assert {memory.evidence[0].quote for memory in await bench.memories()} == {BOTH}
    await learn(bench, process, "Forget that I live in Leeds.", f"{BEES}.")  # repeated in the same window
    (left,) = await bench.memories()
    assert [quoted.quote for quoted in left.evidence] == [BEES, f"{BEES}."]


async def test_other_sentences_keep_their_words(bench: Bench, process: Process) -> None:
    await learn(bench, process, BOTH, "I row on the Aire and I sing.", "Forget that I live in Leeds.")
    assert {memory.content: memory.evidence[0].quote for memory in await bench.memories()} == {
        BEES: BEES,
        "I row on the Aire": "I row on the Aire and I sing.",
        "I sing": "I row on the Aire and I sing.",
    }


async def test_a_memory_says_which_day_its_words_mean(bench: Bench, process: Process) -> None:
    await learn(bench, process, said := "I fly to Rome tomorrow.")
    (flight,) = await bench.memories()
    tomorrow = day_text(flight.said_at + DAY_SECONDS)
    assert (flight.content, flight.evidence[0].quote) == (f"{said} ({tomorrow})", said)


async def test_a_fact_that_stands_twice_in_a_turn_is_stored_once_and_counted(bench: Bench, process: Process) -> None:
    await learn(bench, process, f"{HOME} and {HOME} and {BEES}.")
    assert await bench.contents() == [BEES, HOME]
    assert bench.count("memproxy_facts_dropped_total", reason="repeated") == 1


# The days that words mean

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
