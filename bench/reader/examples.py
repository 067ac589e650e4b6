"""Converts training texts to token windows with labels for each unit and token: the input of a training step."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TypeVar

from texts import FactsOfUser, Leaning, Marked, Pair, Span

from memory.adapters.models.packaged_encoder import Archive
from memory.adapters.models.sentence_pieces import SentencePieces
from memory.learn.reading.encoding import SpecialTokens, TokenWindow, pair_window, windows_of
from memory.learn.reading.labels import (
    ACTS,
    ATTRIBUTE_NAMES,
    CATEGORY_NAMES,
    CLAUSE_MARKS,
    PAIR_RELATIONS,
    RELATION_NAMES,
)
from memory.learn.reading.units import Unit, units_of

IGNORED = -100  # no label: left out of the loss
OVERLAP_CHARACTERS_MIN = 6  # letters and digits of a span that a unit has to hold, or half of it
PAIRED_FACTS_MAX = 3  # of one message
EASY_EVERY = 4  # messages that are paired with another author's
OUTSIDE, BEGIN, INSIDE = range(len(CLAUSE_MARKS))
PARTLY_KNOWN = "partly known"  # the source of examples of which only one or two labels are known
LENGTH_STEP = 24  # tokens; windows of like length share a batch


@dataclass(frozen=True, slots=True)
class Judged:
    """One unit or clause: where it stands in the window, and its labels as numbers, in the order of the heads."""

    first: int
    stop: int
    labels: tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Example:
    """`kinds` and `marks`: of each token. `judged`: units, then clauses. `source`: the file it stands in."""

    window: TokenWindow
    judged: tuple[Judged, ...]
    kinds: tuple[int, ...]
    marks: tuple[int, ...]
    source: str


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A clause, or a sentence with only one, that states something about its author; `message`: the number of the
    message that it stands in.
    """

    message: int
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class PairExample:
    window: TokenWindow
    label: int


Batched = TypeVar("Batched", Example, PairExample)


class Texts:
    """Texts as the packaged tokenizer reads them in production."""

    def __init__(self) -> None:
        pieces = SentencePieces(Archive().sentence_pieces())
        self._encode = pieces.placed
        self._special = SpecialTokens(pieces.start, pieces.end)

    def examples(self, messages: Iterable[Marked]) -> list[Example]:
        made: list[Example] = []
        for marked in messages:
            units = units_of(marked.text)
            texts = [unit.text for unit in units]
            for window in windows_of(texts, marked.before, encode=self._encode, special=self._special):
                example = _example(window, units, marked)
                made += [example] if example.judged else []
        return made

    def leanings(self, leanings: Iterable[Leaning]) -> list[Example]:
        """Each clause as a unit that states something, of which only this and whether it leans is known."""
        made: list[Example] = []
        for one in leanings:
            texts = [text for text in (one.before, one.clause) if text]
            (window,) = windows_of(texts, one.answer, encode=self._encode, special=self._special)
            made.append(_example_of_act(window, "state", leans=int(one.leans)))
        return made

    def orders(self, users: Iterable[FactsOfUser]) -> list[Example]:
        """Each order of one sentence, of which only the act is known."""
        made: list[Example] = []
        texts = ([unit.text for unit in units_of(order.text)] for user in users for order in user.later)
        for text in texts:
            if len(text) == 1:
                (window,) = windows_of(text, "", encode=self._encode, special=self._special)
                made.append(_example_of_act(window, "forget"))
        return made

    def pairs(self, pairs: Iterable[Pair]) -> list[PairExample]:
        return [
            PairExample(
                pair_window(pair.older, pair.newer, encode=self._encode, special=self._special),
                PAIR_RELATIONS.index(pair.relation),
            )
            for pair in pairs
        ]


def stated_facts(messages: Iterable[Marked]) -> list[StatedFact]:
    """What the authors of the messages state about themselves, in order."""
    found: list[StatedFact] = []
    for number, marked in enumerate(messages):
        for unit in units_of(marked.text):
            spans = [span for span in marked.spans if span.start < unit.end and unit.start < span.end]
            for span in spans:
                text = marked.text[max(span.start, unit.start) : min(span.end, unit.end)].strip()
                if span.act == "state" and _letters(text):
                    found.append(StatedFact(number, text if len(spans) > 1 else unit.text, span))
    return found


def standing_together(messages: Iterable[Marked]) -> list[Pair]:
    """Pairs of statements that both hold: what one message says in two sentences, and what two authors say.

    Written pairs are mostly about one thing; most pairs that are asked about are not, and must not replace each other.
    """
    found: list[Pair] = []
    previous = ""
    for number, facts in groupby(stated_facts(messages), key=lambda fact: fact.message):
        stated = [fact.text for fact in facts]
        found += [Pair("unrelated", "", older, newer) for older, newer in pairwise(stated[:PAIRED_FACTS_MAX])]
        found += [Pair("unrelated", "", previous, stated[0])] if previous and number % EASY_EVERY == 0 else []
        previous = stated[-1]
    return found


def _example(window: TokenWindow, units: Sequence[Unit], marked: Marked) -> Example:
    kinds, marks = [IGNORED] * len(window.ids), [IGNORED] * len(window.ids)
    judged: list[Judged] = []
    clauses: list[Judged] = []
    for placed in window.units:
        unit = units[placed.index]
        within: dict[Span, list[int]] = {}
        for token, (left, right) in enumerate(placed.offsets, start=placed.first):
            start, end = unit.start + left, unit.start + right
            here = [kind for first, stop, kind in marked.kinds if first < end and start < stop]
            kinds[token] = here[0] if here else 0
            marks[token] = OUTSIDE
            for span in marked.spans:
                if span.start < end and start < span.end:
                    marks[token] = INSIDE if span in within else BEGIN
                    within.setdefault(span, []).append(token)
                    break
        if not placed.is_context:
            judged.append(Judged(placed.first, placed.stop, _labels(_span_of(unit, marked))))
            clauses += [Judged(tokens[0], tokens[-1] + 1, _labels(span)) for span, tokens in within.items()]
    return Example(window, (*judged, *clauses), tuple(kinds), tuple(marks), marked.source)


def _example_of_act(window: TokenWindow, act: str, *, leans: int = IGNORED) -> Example:
    """A window of whose last unit nothing else is known."""
    last, unknown = window.units[-1], (IGNORED,) * len(window.ids)
    labels = (ACTS.index(act), IGNORED, IGNORED, IGNORED, leans)
    return Example(window, (Judged(last.first, last.stop, labels),), unknown, unknown, PARTLY_KNOWN)


def _span_of(unit: Unit, marked: Marked) -> Span | None:
    """The span of which the unit holds most."""
    best, most = None, 0
    for span in marked.spans:
        shared = _letters(marked.text[max(unit.start, span.start) : min(unit.end, span.end)])
        whole = _letters(marked.text[span.start : span.end])
        if shared > most and (shared >= OVERLAP_CHARACTERS_MIN or 2 * shared >= whole):
            best, most = span, shared
    return best


def _letters(text: str) -> int:
    return sum(character.isalnum() for character in text)


def _labels(span: Span | None) -> tuple[int, int, int, int, int]:
    if span is None:
        return ACTS.index("none"), IGNORED, IGNORED, IGNORED, IGNORED
    return (
        ACTS.index(span.act),
        ATTRIBUTE_NAMES.index(span.attribute),
        RELATION_NAMES.index(span.relation),
        CATEGORY_NAMES.index(span.category),
        IGNORED,
    )


def batches(examples: Sequence[Batched], rng: random.Random, *, tokens_max: int) -> list[list[Batched]]:
    """Of like length, in a random order, of at most so many tokens with padding."""
    order = list(examples)
    rng.shuffle(order)
    order.sort(key=lambda example: len(example.window.ids) // LENGTH_STEP)
    found: list[list[Batched]] = []
    batch: list[Batched] = []
    for example in order:
        longest = max(len(one.window.ids) for one in (*batch, example))
        if batch and longest * (len(batch) + 1) > tokens_max:
            found.append(batch)
            batch = []
        batch.append(example)
    if batch:
        found.append(batch)
    rng.shuffle(found)
    return found
