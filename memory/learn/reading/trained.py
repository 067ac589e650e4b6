"""`StatementReader` without a chat model: our own encoder, fine-tuned from the packaged MiniLM, in one pass a message.

It keeps what users say of themselves, in whole sentences, as they said them. English, Chinese, Spanish and German; what
it reaches in each stands in docs/operations.md. Same words, same claims.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from memory.learn.reading.assembly import Reading, claims_of
from memory.learn.reading.judgements import Judgement
from memory.learn.reading.labels import PAIR_RELATIONS
from memory.learn.reading.units import own_messages, units_of
from memory.model import Claim, Turn, Vector
from memory.ports import PairRelation, PairVerdict, StatementPair
from memory.secrets.plain_text import PLACEHOLDER

BEFORE_CHARACTERS = 400  # of the end of an answer: more than the encoder looks at
REPLACES_SHARE_MIN = 0.75  # `memproxy eval history` shows what it costs of real chats, `updates` what it is good for
CONFIDENCE_AT_LEAST = 0.8  # of a verdict at its bar; what consolidation asks for
STAND_IN = "42"  # for a secret, as the encoder sees it
UNRELATED_AT_MOST = 0.7  # below what keeps two values apart: it says so, too, of changes that are told in other words


class StatementEncoder(Protocol):
    """A model that judges units. Blocks while it computes; may be called from several threads."""

    version: str

    def judge(self, texts: Sequence[str], before: str) -> list[Judgement]:
        """One judgement for each unit of a message, in order. `before`: what the assistant said last, or ""."""
        ...

    def relate(self, pairs: Sequence[tuple[str, str]]) -> Vector:
        """Shares of `PAIR_RELATIONS` for each pair (older, newer), shape `(len(pairs), 3)`."""
        ...


class TrainedReader:
    """`memory.ports.StatementReader`. Computes in a thread, beside the event loop."""

    def __init__(self, encoder: StatementEncoder) -> None:
        self._encoder = encoder

    @property
    def name(self) -> str:
        return f"trained {self._encoder.version}"

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        return await asyncio.to_thread(self._read, turns, context)

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        shares = await asyncio.to_thread(self._encoder.relate, [(pair.older, pair.newer) for pair in pairs])
        return [_verdict(dict(zip(PAIR_RELATIONS, map(float, row), strict=True))) for row in shares]

    def _read(self, turns: Sequence[Turn], context: Sequence[Turn]) -> list[Claim]:
        found: list[Claim] = []
        previous = context[-1] if context else None
        for turn in turns:
            replied_to = previous
            for message in own_messages(turn):
                found += self._claims(message, turn, replied_to)
                replied_to = None  # only the first message of a turn replies to the answer before it
            previous = turn
        return found

    def _claims(self, message: str, turn: Turn, previous: Turn | None) -> list[Claim]:
        units = units_of(message)
        if not units:
            return []
        before = previous.answer[-BEFORE_CHARACTERS:] if previous is not None else ""
        judgements = self._encoder.judge([_as_typed(unit.text) for unit in units], before)
        return claims_of(Reading(message, units, judgements, turn, previous, self.name))


def _as_typed(text: str) -> str:
    """The text of the same length with a number where we redacted a secret: the author typed no word of ours."""
    return PLACEHOLDER.sub(lambda found: STAND_IN.ljust(len(found[0])), text)


def _verdict(shares: Mapping[str, float]) -> PairVerdict:
    """A wrong "replaces" loses a fact: its bar was set on long histories of chats and on changed facts together."""
    replaces = shares[PairRelation.REPLACES.value]
    if replaces >= REPLACES_SHARE_MIN:
        over = (replaces - REPLACES_SHARE_MIN) / (1.0 - REPLACES_SHARE_MIN)
        return PairVerdict(PairRelation.REPLACES, CONFIDENCE_AT_LEAST + (1.0 - CONFIDENCE_AT_LEAST) * over)
    relation = max((PairRelation.SAME, PairRelation.UNRELATED), key=lambda one: shares[one.value])
    sure = shares[relation.value]
    return PairVerdict(relation, min(sure, UNRELATED_AT_MOST) if relation is PairRelation.UNRELATED else sure)
