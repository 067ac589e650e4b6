"""Facts of one sentence share it as their evidence, and are forgotten one by one: no word of one stays with another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from learning_parts import Bench
from plain_reader import FactReader
from turn_logs import Process

from memory.language.dates import period
from memory.learn.gate import FACTS_OF_SENTENCE_MAX
from memory.model import Claim, Turn
from memory.model.days import DAY_SECONDS, day_text

HOME, BEES = "I live in Leeds", "I keep bees"
BOTH = f"{HOME} and {BEES}."


class DatedReader(FactReader):
    """Also says when a fact holds."""

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        claims = await super().read(turns, context=context)
        return [replace(one, holds_from=period(one.text, one.said_at)[0]) for one in claims]


async def learn(bench: Bench, process: Process, *said: str) -> None:
    for one in said:
        await bench.tell(process, one)
    await bench.worker(process, reader=DatedReader()).work_off()


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


async def test_a_sentence_has_a_bounded_number_of_facts(bench: Bench, process: Process) -> None:
    await learn(bench, process, " and ".join(f"I own boat number {n}" for n in range(20)) + ".")
    assert len(await bench.contents()) == FACTS_OF_SENTENCE_MAX


async def test_a_fact_that_stands_twice_in_a_turn_is_stored_once_and_counted(bench: Bench, process: Process) -> None:
    await learn(bench, process, f"{HOME} and {HOME} and {BEES}.")
    assert await bench.contents() == [BEES, HOME]
    assert bench.count("memproxy_facts_dropped_total", reason="repeated") == 1
