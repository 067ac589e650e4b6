"""The statement encoder on ONNX Runtime: token windows in, outputs of its heads per unit out.

The encoder is the packaged one with our low-rank factors merged into it, in 8 bits; see `reader_weights`. The heads
are small matrices, applied here. Loading takes half a second and 60 MB, so that only the worker, evaluations and a
filter that compacts a conversation do it. Does not use torch, and keeps no text.

Each window is a run of its own. Activations are quantised with one scale per run, so that in a batch every window would
change the outputs of all others by up to 0.1, and results would depend on what is due at the same time. On a CPU
batches are hardly faster (1.5 ms per pair alone, 1.4 ms in batches of four), and slower for long texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memory.adapters.models.packaged_encoder import EMBEDDINGS, SENTENCE_PIECES, TOKEN_TABLE, TokenTable, cpu_session
from memory.adapters.models.sentence_pieces import sentence_pieces_of
from memory.learn.reading.encoding import SpecialTokens, TokenWindow, pair_window, windows_of
from memory.learn.reading.judgements import JudgedClause, Judgement, RequestSpan
from memory.learn.reading.labels import (
    ACTS,
    ASKS,
    ATTRIBUTE_NAMES,
    CATEGORY_NAMES,
    CLAUSE_WEIGHTS,
    FRAMES,
    HEADS,
    REACHES,
    RELATION_NAMES,
    TOKEN_KINDS,
)
from memory.model import Vector
from memory.ports import OrderReach

STRETCH_MIN = 0.5  # probability of a token's label
OUTSIDE_MIN = 0.6  # share with which a word is of no clause: two halves of one are worse than a word too many
BEGINS_MIN, BEGINS_AGAIN_MIN = 0.6, 0.1  # share with which a word begins a clause: right behind one, after a gap
CLAUSE_LETTERS_MIN = 4  # of a clause; a character of a script without spaces counts as two
FIRST_UNSPACED = "\u2e80"  # from which on scripts are written without spaces, but for Hangul, whose words are short
IN_WORDS = "'’-_"

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Head:
    """One linear layer: `weight` of shape `(outputs, inputs)`."""

    weight: Floats
    bias: Floats

    def raw(self, inputs: Floats) -> Floats:
        """Shape `(..., outputs)`."""
        return np.asarray(inputs @ self.weight.T + self.bias, dtype=np.float32)

    def __call__(self, inputs: Floats) -> Floats:
        """Probabilities, shape `(..., outputs)`."""
        logits = self.raw(inputs)
        logits -= logits.max(axis=-1, keepdims=True)
        shares = np.exp(logits)
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True), dtype=np.float32)


class OnnxStatementEncoder:
    """`memory.learn.reading.trained.StatementEncoder`. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        """`folder`: from `reader_weights.prepared`."""
        self._session = cpu_session(folder / "encoder.onnx")
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        self.version: str = card["version"]
        base = folder.with_name(card["base"])
        pieces = sentence_pieces_of(base / SENTENCE_PIECES)
        self._encode = pieces.placed
        self._special = SpecialTokens(pieces.start, pieces.end)
        with np.load(folder / "heads.npz", allow_pickle=False) as arrays:
            self._heads: Mapping[str, Head] = {
                name: Head(arrays[f"{name}/weight"].astype(np.float32), arrays[f"{name}/bias"].astype(np.float32))
                for name in HEADS
            }
        self._table = TokenTable(base / TOKEN_TABLE, width=self._heads["token"].weight.shape[1])

    def judge(self, texts: Sequence[str], before: str) -> list[Judgement]:
        windows = windows_of(texts, before, encode=self._encode, special=self._special)
        found: dict[int, Judgement] = {}
        for window in windows:
            found |= self._judged(window, texts, self.hidden(window))
        return [found[index] for index in range(len(texts))]

    def leaning(self, texts: Sequence[str]) -> list[float]:
        return [float(self._heads["leans"](self.pooled([text], ""))[0, 1]) for text in texts]

    def reaches(self, orders: Sequence[str]) -> list[Mapping[OrderReach, float]]:
        shares = (self._heads["reach"](self.pooled([text], ""))[0] for text in orders)
        return [dict(zip(REACHES, map(float, row), strict=True)) for row in shares]

    def relate(self, pairs: Sequence[tuple[str, str]]) -> Vector:
        if not pairs:
            return np.zeros((0, 3), dtype=np.float32)
        sides = (self._heads["sides"].raw(self.sides(older, newer)) for older, newer in pairs)
        return np.stack([self._heads["pair"](np.maximum(one, 0.0)) for one in sides])

    def pooled(self, texts: Sequence[str], before: str) -> Floats:
        """What each unit of a message is judged by, shape `(len(texts), 2 * width)`. Training sees it as well."""
        found: dict[int, Floats] = {}
        for window in windows_of(texts, before, encode=self._encode, special=self._special):
            hidden = self.hidden(window)
            judged = (placed for placed in window.units if not placed.is_context)
            found |= {placed.index: pooled_of(hidden, placed.first, placed.stop) for placed in judged}
        return np.stack([found[index] for index in range(len(texts))])

    def sides(self, older: str, newer: str) -> Floats:
        """What a pair is judged by: `sides_of` its hidden states, shape `(5 * width,)`. Training sees it as well."""
        window = pair_window(older, newer, encode=self._encode, special=self._special)
        return sides_of(self.hidden(window), window.segments)

    def hidden(self, window: TokenWindow) -> Floats:
        """Shape `(tokens, width)`."""
        ids = np.array([window.ids], dtype=np.int64)
        segments = np.array([window.segments], dtype=np.int64)
        given = {EMBEDDINGS: self._table(ids), "attention_mask": np.ones_like(ids), "token_type_ids": segments}
        (hidden,) = self._session.run(None, given)
        return np.asarray(hidden[0], dtype=np.float32)

    def _judged(self, window: TokenWindow, texts: Sequence[str], hidden: Floats) -> dict[int, Judgement]:
        judged = [placed for placed in window.units if not placed.is_context]
        kinds = self._heads["token"](hidden)
        weighted = self._heads["clause"](hidden) / np.array(CLAUSE_WEIGHTS)
        marks: Floats = np.asarray(weighted / weighted.sum(axis=-1, keepdims=True), dtype=np.float32)
        found: dict[int, Judgement] = {}
        for placed in judged:
            text = texts[placed.index]
            is_cut = not placed.offsets or placed.offsets[-1][1] < len(text.rstrip())  # its end was not read
            clauses = [] if is_cut else _clauses(marks[placed.first : placed.stop], placed.offsets, text)
            spans = [(0, placed.stop - placed.first), *clauses]
            pooled = np.stack([pooled_of(hidden, placed.first + first, placed.first + stop) for first, stop in spans])
            labels = self._labels(pooled)
            found[placed.index] = Judgement(
                **labels[0],
                stretches=tuple(_stretches(placed.offsets, kinds[placed.first : placed.stop], text)),
                clauses=tuple(
                    JudgedClause(placed.offsets[first][0], placed.offsets[stop - 1][1], **labels[number])
                    for number, (first, stop) in enumerate(clauses, 1)
                ),
                frames=dict(zip(FRAMES, map(float, self._heads["frame"](pooled[0])), strict=True)),
                asked=dict(zip(ASKS, map(float, self._heads["asks"](pooled[0])), strict=True)),
            )
        return found

    def _labels(self, pooled: Floats) -> list[dict[str, Any]]:
        """What the heads say of each row, by the names of a judgement's fields."""
        acts, attributes = self._heads["act"](pooled), self._heads["attribute"](pooled)
        relations, categories = self._heads["relation"](pooled), self._heads["category"](pooled)
        return [
            {
                "acts": dict(zip(ACTS, map(float, acts[row]), strict=True)),
                "attribute": ATTRIBUTE_NAMES[int(attributes[row].argmax())],
                "attribute_share": float(attributes[row].max()),
                "relation": RELATION_NAMES[int(relations[row].argmax())],
                "category": CATEGORY_NAMES[int(categories[row].argmax())],
            }
            for row in range(len(pooled))
        ]


def sides_of(hidden: Floats, segments: Sequence[int]) -> Floats:
    """The features of a pair: the means of the older's and the newer's tokens, their difference and product, and the
    first token. Shape `(5 * width,)`.
    """
    middle = len(segments) - sum(segments)
    older, newer = _mean(hidden[1 : middle - 1]), _mean(hidden[middle:-1])
    return np.concatenate([older, newer, np.abs(older - newer), older * newer, hidden[0]])


def pooled_of(hidden: Floats, first: int, stop: int) -> Floats:
    """The mean of these tokens and the first of the window, shape `(2 * width,)`."""
    return np.concatenate([_mean(hidden[first:stop]), hidden[0]])


def _mean(tokens: Floats) -> Floats:
    """Zeros for no tokens: a text of white space has none."""
    return np.asarray(tokens.mean(axis=0) if len(tokens) else np.zeros(tokens.shape[1:], dtype=np.float32))


def _clauses(shares: Floats, offsets: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """First and stop of the tokens of each clause, in whole words. `shares`: of `CLAUSE_MARKS`, shape `(tokens, 3)`.

    Words that begin none continue the one before, with what stands between. One of hardly any letters is no fact, and
    as many that are left at the end belong to the last.
    """
    found: list[tuple[int, int]] = []
    words = _words(offsets, text)
    for first, stop in words:
        outside, begins, _ = shares[first:stop].mean(axis=0)
        if outside > OUTSIDE_MIN:
            continue
        least = BEGINS_MIN if found and found[-1][1] == first else BEGINS_AGAIN_MIN
        if found and (begins < least or not _says_something(text, offsets, found[-1])):
            found[-1] = (found[-1][0], stop)
        else:
            found.append((first, stop))
    if len(found) > 1 and not _says_something(text, offsets, found[-1]):
        last = found.pop()
        found[-1] = (found[-1][0], last[1])
    if found:
        left = [word for word in words if word[0] >= found[-1][1] and text[offsets[word[0]][0]].isalnum()]
        if left and not _says_something(text, offsets, (left[0][0], left[-1][1])):
            found[-1] = (found[-1][0], left[-1][1])
    return [clause for clause in found if _says_something(text, offsets, clause)]


def _words(offsets: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """First and stop of the tokens of each word; of a script without spaces, each token."""
    found: list[tuple[int, int]] = []
    for token, (start, _) in enumerate(offsets):
        is_within = found and 0 < start < len(text) and _is_of_word(text[start - 1]) and _is_of_word(text[start])
        if is_within:
            found[-1] = (found[-1][0], token + 1)
        else:
            found.append((token, token + 1))
    return found


def _is_of_word(character: str) -> bool:
    return (character.isalnum() and character < FIRST_UNSPACED) or character in IN_WORDS


def _says_something(text: str, offsets: Sequence[tuple[int, int]], clause: tuple[int, int]) -> bool:
    words = text[offsets[clause[0]][0] : offsets[clause[1] - 1][1]]
    letters = sum(2 if character >= FIRST_UNSPACED else 1 for character in words if character.isalnum())
    return letters >= CLAUSE_LETTERS_MIN


def _stretches(offsets: Sequence[tuple[int, int]], kinds: Floats, text: str) -> list[RequestSpan]:
    """Spans of words with one label, in characters of the unit."""
    found: list[RequestSpan] = []
    for first, stop in _words(offsets, text):
        start, end, shares = offsets[first][0], offsets[stop - 1][1], kinds[first:stop].mean(axis=0)
        kind = int(shares.argmax())
        if kind == 0 or shares[kind] < STRETCH_MIN:
            continue
        name = TOKEN_KINDS[kind]
        if found and found[-1].kind == name and start - found[-1].end <= 1:
            found[-1] = RequestSpan(name, found[-1].start, end)
        else:
            found.append(RequestSpan(name, start, end))
    return found
