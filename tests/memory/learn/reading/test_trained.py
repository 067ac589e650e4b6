"""The trained reader around its encoder: what the encoder gets to see, and what becomes of its shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from claims import turn

from memory.learn.consolidation import UNRELATED_MIN
from memory.learn.reading.judgements import Judgement
from memory.learn.reading.labels import ACTS, PAIR_RELATIONS
from memory.learn.reading.trained import TrainedReader
from memory.model import Vector
from memory.ports import PairRelation, StatementPair

PAIR = StatementPair("I live in Leeds.", "I live in York.")


class FixedEncoder:
    """Says the same of every pair, and nothing of any unit; remembers what it saw."""

    version = "fixed"

    def __init__(self, **shares: float) -> None:
        self._shares = [shares.get(relation, 0.0) for relation in PAIR_RELATIONS]
        self.texts: list[str] = []

    def judge(self, texts: Sequence[str], before: str) -> list[Judgement]:
        self.texts += texts
        acts = {act: float(act == "none") for act in ACTS}
        return [Judgement(acts, "none", 1.0, "user", "fact", ()) for _ in texts]

    def relate(self, pairs: Sequence[tuple[str, str]]) -> Vector:
        return np.array([self._shares] * len(pairs), dtype=np.float32)


async def test_a_redacted_secret_is_read_as_a_value_and_moves_nothing_behind_it() -> None:
    encoder, message = FixedEncoder(), "The code is [redacted password] and I live in Leeds."
    await TrainedReader(encoder).read([turn(message)], context=())
    (seen,) = encoder.texts
    assert "redacted" not in seen
    assert (len(seen), seen.index("I live")) == (len(message), message.index("I live"))


async def test_it_is_never_so_sure_of_no_relation_that_two_values_would_stand_apart_for_that() -> None:
    (verdict,) = await TrainedReader(FixedEncoder(unrelated=0.99)).relate([PAIR])
    assert (verdict.relation, verdict.confidence < UNRELATED_MIN) == (PairRelation.UNRELATED, True)


@pytest.mark.parametrize(("share", "relation"), [(0.77, PairRelation.REPLACES), (0.73, PairRelation.SAME)])
async def test_a_change_loses_a_memory_and_has_to_be_sure(share: float, relation: PairRelation) -> None:
    (verdict,) = await TrainedReader(FixedEncoder(replaces=share, same=1.0 - share)).relate([PAIR])
    assert verdict.relation is relation
