"""`StatementReader` without a chat model: our own encoder, fine-tuned from the packaged one, one pass per message.

It keeps what users say about themselves, verbatim, a memory for each fact, in thirteen languages. Deterministic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from memory.learn.reading.assembly import JudgedMessage, claims_of
from memory.learn.reading.judgements import Judgement
from memory.learn.reading.labels import PAIR_RELATIONS
from memory.learn.reading.units import own_messages, units_of
from memory.model import Claim, Turn, Vector
from memory.ports import PairRelation, PairVerdict, StatementPair
from memory.secrets.plain_text import PLACEHOLDER

BEFORE_CHARACTERS = 400  # of the end of an answer: more than the encoder uses
REPLACES_SHARE_MIN = 0.6  # `memproxy eval history` shows its cost in real chats, `updates` its benefit
CONFIDENCE_AT_LEAST = 0.8  # of a verdict at its threshold; equals the minimum of consolidation
STAND_IN = "42"  # replaces a secret in the encoder's input
UNRELATED_AT_MOST = 0.7  # below what keeps two values apart: "unrelated" is also predicted for changes in other words


class StatementEncoder(Protocol):
    """A model that judges units. Blocks while it computes; thread-safe."""

    version: str

    def judge(self, texts: Sequence[str], before: str) -> list[Judgement]:
        """One judgement per unit of a message, in order. `before`: the assistant's last message, or ""."""
        ...

    def relate(self, pairs: Sequence[tuple[str, str]]) -> Vector:
        """Probabilities of `PAIR_RELATIONS` for each pair (older, newer), shape `(len(pairs), 3)`."""
        ...


class TrainedReader:
    """`memory.ports.StatementReader`. Computes in a thread."""

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
        return claims_of(JudgedMessage(message, units, judgements, turn, previous, self.name))


def _as_typed(text: str) -> str:
    """The text with a number of the same length in place of each redacted secret: the placeholder is not the
    author's.
    """
    return PLACEHOLDER.sub(lambda found: STAND_IN.ljust(len(found[0])), text.replace("\n", " "))


def _verdict(shares: Mapping[str, float]) -> PairVerdict:
    """A wrong "replaces" loses a fact: its threshold was set on long chat histories and on changed facts together.
    Below it the verdict is not sure enough to count alone.
    """
    replaces = shares[PairRelation.REPLACES.value]
    if replaces >= REPLACES_SHARE_MIN:
        over = (replaces - REPLACES_SHARE_MIN) / (1.0 - REPLACES_SHARE_MIN)
        return PairVerdict(PairRelation.REPLACES, CONFIDENCE_AT_LEAST + (1.0 - CONFIDENCE_AT_LEAST) * over)
    relation = max(PairRelation, key=lambda one: shares[one.value])
    if relation is PairRelation.REPLACES:
        return PairVerdict(relation, CONFIDENCE_AT_LEAST * replaces / REPLACES_SHARE_MIN)
    sure = shares[relation.value]
    return PairVerdict(relation, min(sure, UNRELATED_AT_MOST) if relation is PairRelation.UNRELATED else sure)
