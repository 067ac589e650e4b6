"""`StatementReader` without a chat model: our own encoder, fine-tuned from the packaged one, one pass per message.

It keeps what users say about themselves, verbatim, a memory for each fact, in thirteen languages. Deterministic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from math import log
from threading import Lock
from typing import Protocol, TypeAlias

from memory.learn.reading.assembly import JudgedMessage, claims_of
from memory.learn.reading.judgements import Judgement, with_leaning
from memory.learn.reading.labels import PAIR_RELATIONS, REACHES
from memory.learn.reading.replies import question_of
from memory.learn.reading.units import Unit, own_messages, units_of
from memory.model import Claim, Turn, Vector
from memory.ports import FrameKind, FrameMark, OrderReach, PairRelation, PairVerdict, StatementPair
from memory.runtime.recent import Recent
from memory.secrets.plain_text import PLACEHOLDER

ANSWER_CHARACTERS_MIN = 40  # of an answer that asks nothing; shorter ones only acknowledge
BEFORE_CHARACTERS = 400  # of the end of an answer: more than the encoder uses
REPLACES_SHARE_MIN = 0.5  # `memproxy eval history` shows its cost in real chats, `updates` its benefit
CONFIDENCE_AT_LEAST = 0.8  # of a verdict at its threshold; equals the minimum of consolidation
STAND_IN = "42"  # replaces a secret in the encoder's input
# What a statement replaces is seldom more than one fact, and its neighbours resemble that. On users kept out of
# training (`bench/reader/score_changes.py`), of what passes 0.63 is meant, with these 0.81, and 0.72 of the changes are
# seen for 0.79.
LIKENESS_WEIGHT, AS_SURE, SHARE_LEAST = 10.0, 0.5, 1e-6
NEIGHBOUR_CONFIDENCE = 0.5
UNRELATED_AT_MOST = 0.7  # below what keeps two values apart: "unrelated" is also predicted for changes in other words
# Of those that cost most if they are taken wrongly; below it counts what the words name.
REACH_SHARE_MIN = dict.fromkeys((OrderReach.EVERYTHING, OrderReach.STOP), 0.8)
REACH_SHARE_MIN |= {OrderReach.CONVERSATION: 0.6, OrderReach.LIMITED: 0.6, OrderReach.PREVIOUS: 0.5}
REVOKED_SHARE_MIN = 0.8
NOT_REVOKED = tuple(one for one in REACHES if one is not OrderReach.REVOKED)
GOES_ON = (",", "，", "、", "،")
FRAME_UNITS_MAX = 8  # of a message: frames are set at its beginning, or at its end
RECENT_MESSAGES_MAX = 4_096  # some 200 bytes each

MessageFrames: TypeAlias = Sequence[tuple[FrameKind, int, int]]
"""Of one message: kind, and the first and last character of the sentence."""


class StatementEncoder(Protocol):
    """A model that judges units. Blocks while it computes; thread-safe."""

    version: str

    def judge(self, texts: Sequence[str], before: str) -> list[Judgement]:
        """One judgement per unit of a message, in order. `before`: the assistant's last message, or ""."""

    def leaning(self, texts: Sequence[str]) -> list[float]:
        """How likely each text cannot be understood alone, 0..1."""

    def reaches(self, orders: Sequence[str]) -> list[Mapping[OrderReach, float]]:
        """How likely each order has each reach, 0..1."""

    def relate(self, pairs: Sequence[tuple[str, str]]) -> Vector:
        """Probabilities of `PAIR_RELATIONS` for each pair (older, newer), shape `(len(pairs), 3)`."""


def reach_of(shares: Mapping[OrderReach, float]) -> OrderReach:
    """The likeliest that is likely enough. An order that is not surely taken back is judged as if it were none."""
    if shares[OrderReach.REVOKED] >= REVOKED_SHARE_MIN:
        return OrderReach.REVOKED
    reach = max(NOT_REVOKED, key=lambda one: shares[one])
    share = shares[reach] / max(1.0 - shares[OrderReach.REVOKED], 1e-6)
    return reach if share >= REACH_SHARE_MIN.get(reach, 0.0) else OrderReach.TOPIC


class TrainedReader:
    """`memory.ports.ReadyReader`. Computes in a thread. Remembers the frames of messages, and no text."""

    def __init__(self, encoder: StatementEncoder) -> None:
        self.name = f"trained {encoder.version}"
        self._encoder = encoder
        self._recent: Recent[bytes, MessageFrames] = Recent(RECENT_MESSAGES_MAX)  # by `_key`
        self._lock = Lock()

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        return await asyncio.to_thread(self._read, turns, context)

    async def frames(self, turns: Sequence[Turn]) -> list[FrameMark]:
        return await asyncio.to_thread(self._frames, turns)

    async def reaches(self, orders: Sequence[str]) -> list[OrderReach]:
        return [reach_of(shares) for shares in await asyncio.to_thread(self._encoder.reaches, orders)]

    async def leaning(self, texts: Sequence[str]) -> list[float]:
        return await asyncio.to_thread(self._encoder.leaning, list(map(_shown, texts)))

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        asked = list(map(_compared, pairs))
        distinct = list(dict.fromkeys(asked))
        shares = await asyncio.to_thread(self._encoder.relate, distinct)
        known = {
            texts: dict(zip(PAIR_RELATIONS, map(float, row), strict=True))
            for texts, row in zip(distinct, shares, strict=True)
        }
        sure = [_sureness(known[texts], pair.likeness) for texts, pair in zip(asked, pairs, strict=True)]
        best: dict[str, float] = {}
        for pair, share in zip(pairs, sure, strict=True):  # each fact of a sentence may replace one of its own
            best[pair.newer] = max(best.get(pair.newer, share), share)
        return [
            _verdict(known[texts], is_surest=pair.likeness is None or share >= best[pair.newer] - AS_SURE)
            for texts, pair, share in zip(asked, pairs, sure, strict=True)
        ]

    def _read(self, turns: Sequence[Turn], context: Sequence[Turn]) -> list[Claim]:
        found: list[Claim] = []
        for turn, _, message, previous in _messages(turns, context[-1] if context else None):
            units, judgements = self._judged(message, previous)
            self._remember(_key(message, previous), _frames_of(units, judgements))
            alone = with_leaning(_texts(units), judgements, self._encoder.leaning)
            found += claims_of(JudgedMessage(message, units, alone, turn, previous, self.name, self._encoder.leaning))
        return found

    def _frames(self, turns: Sequence[Turn]) -> list[FrameMark]:
        found: list[FrameMark] = []
        for turn, index, message, previous in _messages(turns, None):
            key = _key(message, previous)
            known = self._recent.get(key)
            frames = _frames_of(*self._judged(message, previous)) if known is None else known
            self._remember(key, frames)
            found += [FrameMark(kind, turn.id, index, start, end) for kind, start, end in frames]
        return found

    def _judged(self, message: str, previous: Turn | None) -> tuple[list[Unit], list[Judgement]]:
        units = units_of(message)
        return units, self._encoder.judge(_texts(units), _before(previous)) if units else []

    def _remember(self, key: bytes, frames: MessageFrames) -> None:
        with self._lock:
            self._recent[key] = frames


def _messages(turns: Sequence[Turn], previous: Turn | None) -> Iterator[tuple[Turn, int, str, Turn | None]]:
    """Each message with its turn, its index and the turn that it replies to: only a turn's first one replies."""
    for turn in turns:
        for index, message in enumerate(own_messages(turn)):
            yield turn, index, message, None if index else previous
        previous = turn


def _before(previous: Turn | None) -> str:
    """The end of the answer. "Okay." says nothing that a message could reply to."""
    answer = previous.answer.strip() if previous is not None else ""
    says_something = len(answer) >= ANSWER_CHARACTERS_MIN or question_of(answer)
    return answer[-BEFORE_CHARACTERS:] if says_something else ""


def _key(message: str, previous: Turn | None) -> bytes:
    return blake2b(repr((message, _before(previous))).encode(), digest_size=16).digest()


def _frames_of(units: Sequence[Unit], judgements: Sequence[Judgement]) -> MessageFrames:
    own = [
        (unit, judged.frames)
        for unit, judged in zip(units, judgements, strict=True)
        if unit.is_own and not unit.text.endswith(GOES_ON)  # "Hi," opens what the same author says
    ]
    considered = own if len(own) <= FRAME_UNITS_MAX else [*own[: FRAME_UNITS_MAX - 2], *own[-2:]]
    return tuple(
        (kind, unit.start, unit.end)
        for unit, shares in considered
        for kind in FrameKind
        if shares and kind == max(shares, key=lambda one: shares[one])
    )


def _texts(units: Sequence[Unit]) -> list[str]:
    return [_shown(unit.text) for unit in units]


def _shown(text: str) -> str:
    """With a number of the same length in place of a redacted secret: the placeholder is not the author's."""
    return PLACEHOLDER.sub(lambda found: STAND_IN.ljust(len(found[0])), text.replace("\n", " "))


def _compared(pair: StatementPair) -> tuple[str, str]:
    """A fact, and the whole sentence that was said later: "the monitor stays" says nothing without the rest of it."""
    return pair.older, pair.newer_context.sentence or pair.newer


def _sureness(shares: Mapping[str, float], likeness: float | None) -> float:
    """The log odds that the newer statement replaces the older one, and how much they resemble each other."""
    replaces = shares[PairRelation.REPLACES.value]
    other = max(share for relation, share in shares.items() if relation != PairRelation.REPLACES)
    return _log_odds(replaces, other) + LIKENESS_WEIGHT * (likeness or 0.0)


def _log_odds(share: float, against: float) -> float:
    return log(max(share, SHARE_LEAST)) - log(max(against, SHARE_LEAST))


def _verdict(shares: Mapping[str, float], *, is_surest: bool) -> PairVerdict:
    """A wrong "replaces" loses a fact: its threshold was set on long chat histories and on changed facts together.
    Below it the verdict is not sure enough to count alone, nor is that on a neighbour of what is meant.
    """
    replaces = shares[PairRelation.REPLACES.value]
    over = _log_odds(replaces, 1.0 - replaces)
    if replaces >= REPLACES_SHARE_MIN and not is_surest:
        return PairVerdict(PairRelation.REPLACES, NEIGHBOUR_CONFIDENCE, over)
    if replaces >= REPLACES_SHARE_MIN:
        beyond = (replaces - REPLACES_SHARE_MIN) / (1.0 - REPLACES_SHARE_MIN)
        return PairVerdict(PairRelation.REPLACES, CONFIDENCE_AT_LEAST + (1.0 - CONFIDENCE_AT_LEAST) * beyond, over)
    relation = max(PairRelation, key=lambda one: shares[one.value])
    if relation is PairRelation.REPLACES:
        return PairVerdict(relation, CONFIDENCE_AT_LEAST * replaces / REPLACES_SHARE_MIN, over)
    sure = shares[relation.value]
    return PairVerdict(relation, min(sure, UNRELATED_AT_MOST) if relation is PairRelation.UNRELATED else sure, over)
