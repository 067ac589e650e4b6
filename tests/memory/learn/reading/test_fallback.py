"""Two readers, one after the other: who steps in for what, and what is passed on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry
from reading_parts import ANN, AT, JUNK, FixedReader, ScriptedChat, said

from memory.errors import Late, Unavailable
from memory.learn.reading.fallback import FallbackReader
from memory.learn.reading.model_reader import ModelReader, ModelReaderSettings
from memory.model import Act, Claim, Evidence, Turn
from memory.ports import PairRelation, PairVerdict, StatementPair
from memory.runtime.metrics import Metrics

CLAIM = Claim(Act.STATE, "I dive.", Evidence("I dive.", "t0"), ANN, AT, made_by="other")
PAIR = StatementPair("I dive.", "I swim.")


def counted(metrics: Metrics, of: str) -> float:
    return metrics.registry.get_sample_value("memproxy_model_shortfalls_total", {"of": of}) or 0.0


async def test_the_first_reader_reads_and_the_other_is_not_asked() -> None:
    other = FixedReader(found=JUNK, relation=JUNK)
    reader = FallbackReader(FixedReader("first", found=[CLAIM], relation=PairRelation.SAME), other)
    assert await reader.read(said("I dive."), context=()) == [CLAIM]
    assert [one.relation for one in await reader.relate([PAIR])] == [PairRelation.SAME]
    assert reader.name == "first"
    assert other.windows == 0


async def test_junk_has_the_other_reader_read_that_window_and_is_counted() -> None:
    metrics = Metrics(CollectorRegistry())
    reader = FallbackReader(FixedReader(found=JUNK), FixedReader(found=[CLAIM]), metrics=metrics)
    assert await reader.read(said("I dive."), context=()) == [CLAIM]
    assert (counted(metrics, "window"), counted(metrics, "pair")) == (1.0, 0.0)
    assert len(await reader.relate([PAIR])) == 1
    assert counted(metrics, "pair") == 0.0


async def test_junk_about_pairs_has_the_other_reader_relate_them_and_is_counted() -> None:
    metrics = Metrics(CollectorRegistry())
    reader = FallbackReader(FixedReader(relation=JUNK), FixedReader(relation=PairRelation.REPLACES), metrics=metrics)
    assert [one.relation for one in await reader.relate([PAIR, PAIR])] == [PairRelation.REPLACES] * 2
    assert (counted(metrics, "window"), counted(metrics, "pair")) == (0.0, 1.0)


async def test_an_outage_is_passed_on() -> None:
    down = Unavailable("model", "down")
    reader = FallbackReader(FixedReader(found=down, relation=down), FixedReader(found=[CLAIM]))
    with pytest.raises(Unavailable):
        await reader.read(said("I dive."), context=())
    with pytest.raises(Unavailable):
        await reader.relate([PAIR])


class Slow(FixedReader):
    """Too late so many times."""

    def __init__(self, times: int) -> None:
        super().__init__("slow", found=[CLAIM], relation=PairRelation.SAME)
        self.asked = 0
        self._times = times

    def late(self) -> None:
        self.asked += 1
        if self.asked <= self._times:
            raise Late("model", "no answer within 30 s")

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        self.late()
        return await super().read(turns, context=context)

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        self.late()
        return await super().relate(pairs)


@pytest.mark.parametrize(("times", "stepped_in"), [(1, 0.0), (2, 1.0)])
async def test_a_model_that_is_too_late_gets_one_more_try_then_the_other_reader_steps_in(
    times: int, stepped_in: float
) -> None:
    metrics = Metrics(CollectorRegistry())
    first, other = Slow(times), FixedReader(found=[CLAIM])
    assert await FallbackReader(first, other, metrics=metrics).read(said("I dive."), context=()) == [CLAIM]
    assert (first.asked, other.windows, counted(metrics, "window")) == (2, stepped_in, stepped_in)
    first, other = Slow(times), FixedReader(relation=PairRelation.REPLACES)
    (verdict,) = await FallbackReader(first, other, metrics=metrics).relate([PAIR])
    assert verdict.relation is (PairRelation.REPLACES if stepped_in else PairRelation.SAME)
    assert (first.asked, counted(metrics, "pair")) == (2, stepped_in)


async def test_what_the_other_reader_raises_is_passed_on() -> None:
    reader = FallbackReader(FixedReader(found=JUNK), FixedReader(found=Unavailable("encoder", "gone")))
    with pytest.raises(Unavailable, match="encoder"):
        await reader.read(said("I dive."), context=())


async def test_a_model_that_answers_prose_twice_leaves_the_window_to_the_other_reader() -> None:
    model = ScriptedChat("I would say that they dive.")
    reader = FallbackReader(ModelReader(model, ModelReaderSettings("tiny")), FixedReader(found=[CLAIM]))
    assert await reader.read(said("I dive."), context=()) == [CLAIM]
    assert len(model.asked) == 2
