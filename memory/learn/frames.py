"""Finds the words that authors say in a role, or quote without marks: they are evidence of nothing about the author.

A role play holds from the sentence that opens it until one that ends it, over the turns of a conversation; what a
sentence presents ("My tenant sent me this, what do I answer?") is the rest of its message. Which sentences do that is
learnt from the examples in `frames.toml` by ridge regression on the encoder's vectors, at the first use.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from memory.learn.embedded import Embedded
from memory.learn.reading.units import own_messages, units_of
from memory.model import Claim, Turn, Vector

PLAYS, ENDS, PRESENTS, PLAIN = "plays", "ends", "presents", "plain"
KINDS = (PLAYS, ENDS, PRESENTS, PLAIN)
SHARE_MIN: Mapping[str, float] = {PLAYS: 0.6, ENDS: 0.5, PRESENTS: 0.7}  # of a kind, as the regression estimates it
RIDGE = 1.0
UNITS_MAX = 8  # of a message: frames are set at its beginning, or at its end

Span = tuple[str, int, int, int]
"""Turn, index of the message, and the characters from and to which its words are not the author's own."""


class Frames:
    """Raises `Unavailable`. Keeps nothing but its weights."""

    def __init__(self, embedded: Embedded) -> None:
        self._embedded = embedded
        self._weights: Vector | None = None

    async def foreign(self, claims: Sequence[Claim], turns: Sequence[Turn]) -> list[Claim]:
        """Those of the claims whose words stand in a frame. `turns`: of the conversation, in the order said."""
        if not claims:
            return []
        texts = [text for turn in turns for message in own_messages(turn) for text, _ in _considered(message)]
        kinds = await self._kinds(texts)
        spans = list(_spans(turns, kinds))
        return [claim for claim in claims if any(_is_within(claim, span, turns) for span in spans)]

    async def _kinds(self, texts: Sequence[str]) -> dict[str, frozenset[str]]:
        """By text, the kinds that reach their share."""
        if self._weights is None:
            examples = _examples()
            vectors = await self._embedded([text for text, _ in examples])
            self._weights = _fitted(np.stack([vectors[text] for text, _ in examples]), [kind for _, kind in examples])
        vectors = await self._embedded(texts)
        return {
            text: frozenset(
                kind for kind, share in zip(KINDS, shares, strict=True) if share >= SHARE_MIN.get(kind, 1.1)
            )
            for text, shares in ((text, np.append(vector, 1.0) @ self._weights) for text, vector in vectors.items())
        }


@cache
def _examples() -> list[tuple[str, str]]:
    listed = tomllib.loads(files("memory.learn").joinpath("frames.toml").read_text(encoding="utf-8"))
    return [(text, kind) for kind in KINDS for text in listed[kind]]


def _fitted(vectors: Vector, kinds: Sequence[str]) -> Vector:
    """Weights and bias per kind, shape `(width + 1, kinds)`. The bias is not drawn to zero."""
    rows = np.hstack([vectors, np.ones((len(vectors), 1))]).astype(np.float64)
    wanted = np.array([[kind == one for one in KINDS] for kind in kinds], dtype=np.float64)
    ridge = np.diag([*[RIDGE] * vectors.shape[1], 1e-6])
    return np.asarray(np.linalg.solve(rows.T @ rows + ridge, rows.T @ wanted), dtype=np.float32)


def _considered(message: str) -> list[tuple[str, int]]:
    """Sentences of the author, and where they end."""
    own = [(unit.text, unit.end) for unit in units_of(message) if unit.is_own]
    return own if len(own) <= UNITS_MAX else [*own[: UNITS_MAX - 2], *own[-2:]]


def _spans(turns: Sequence[Turn], kinds: Mapping[str, frozenset[str]]) -> Iterator[Span]:
    plays = False
    for turn in turns:
        for index, message in enumerate(own_messages(turn)):
            since = 0 if plays else -1
            for text, end in _considered(message):
                if not plays and PLAYS in kinds[text]:
                    plays, since = True, end - len(text)
                elif plays and ENDS in kinds[text]:
                    yield turn.id, index, since, end
                    plays, since = False, -1
                elif PRESENTS in kinds[text]:
                    yield turn.id, index, end, len(message)
            if plays:
                yield turn.id, index, since, len(message)


def _is_within(claim: Claim, span: Span, turns: Sequence[Turn]) -> bool:
    turn_id, index, start, end = span
    if claim.evidence.turn_id != turn_id:
        return False
    message = next(list(own_messages(turn))[index] for turn in turns if turn.id == turn_id)
    at = message.find(claim.evidence.quote)
    return start <= at < end


__all__ = ["Frames"]
