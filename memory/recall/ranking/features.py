"""The ranking features: for each feature, an array with one value per memory, before any weighting.

Cosines are centred on the value of unrelated texts and divided by 0.06, so that 1.0 is one clear step. Lexical features
are BM25 divided by 4. The others lie between 0 and 1 unless stated otherwise. Never weighs one against another.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memory.model import Question, Scope, Vector
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.layout import BM25_SATURATION, Layout, windowed
from memory.recall.ranking.lexical import fold, is_gram, terms
from memory.recall.ranking.needed import Needs
from memory.recall.ranking.rows import HALF_LIFE_CLASSES, Floats
from memory.recall.ranking.temporal import DAY, TimeQuestion, time_question
from memory.recall.ranking.weights import HALF_LIFE_DAYS, UNSPACED_CHARACTER

COSINE_UNRELATED = 0.0  # of two texts that have nothing in common, with the packaged model (`bench/centre.py`)
UNRELATED_MEMORIES = 3  # number of memories at which their own median cosine counts as much as that constant
COSINE_STEP = 0.06
BM25_STEP = 4.0
BACKGROUND_MEMORIES = 30  # so many without the term are assumed: of a dozen, counts say little about rarity
QUERY_TERMS_MAX = 64  # of a longer question, the rarest
AFTERWARDS_DAYS = 5.0  # people usually talk about a day within this time after it
INHERITED = ("dense", "lexical", "needed", "window_dense", "window_lexical", "session_dense", "session_lexical")
# Requests to write or explain something; the user's preferences on style are useful for any of them.
_WRITES = re.compile(
    r"\b(?:explain|describe|compare|summari[sz]e|summary|outline|write|draft|compose|edit|rewrite|proofread|critique|review"
    r"|tell me about|teach me|walk me through|how (?:do|does)\b.*\bworks?"
    r"|erklar\w*|beschreib\w*|vergleich\w*|schreib\w*|verfass\w*|fass\w*|explica\w*|describe|compara\w*|resum\w*|escrib\w*"
    r"|redacta\w*)\b|解释|讲讲|讲解|介绍|说明|描述|比较|总结|写(?!过|了|的)|起草|润色|改写|修改"
)


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """Those that need no vector. `claimed`: the rows with the claim that is asked for; None if none were compared."""

    layout: Layout
    arrays: Mapping[str, Floats]
    question: TimeQuestion
    claimed: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class RankingFeatures:
    """`topic`: the share of the topical evidence in the odds that a memory is needed; None if nobody can tell them."""

    arrays: dict[str, Floats]
    cosine: Floats
    question: TimeQuestion
    topic: float | None


def text_features(corpus: Corpus, layout: Layout, asked: Question) -> TextFeatures:
    """The features that can be computed while the question is still being embedded."""
    query, now = asked.query, asked.now
    folded = fold(query.text)
    question = time_question(query.text, now=now)
    named, words = _query_terms(corpus, query.text)
    arrays = _lexical(corpus, layout, words)
    arrays["speaker"] = np.isin(layout.facts["label"], named).astype(np.float32)
    arrays |= _temporal(layout, question)
    arrays |= {"question": layout.facts["is_question"], "first_person": layout.facts["is_first_person"]}
    arrays |= _of_the_memory(layout, asked.scope, now)
    arrays["manner"] = layout.facts["is_manner"] * np.float32(bool(_WRITES.search(folded)))
    return TextFeatures(layout, arrays, question)


def add_vector_features(
    corpus: Corpus, reading: TextFeatures, vector: Vector, *, needs: Needs | None
) -> RankingFeatures:
    """All features, for the layout of `reading`."""
    layout = reading.layout
    cosine = corpus.similarities(vector, layout)
    direction = None if needs is None else needs.direction(vector)
    arrays = {**reading.arrays, **_dense(layout, cosine), "needed": _zeros(layout)}
    if direction is not None:
        arrays["needed"] = corpus.similarities(direction.vector, layout) + np.float32(direction.offset)
    arrays["answer"] = _answer(layout, arrays["dense"])
    _inherit_from_superseded(arrays, layout)
    topic = None if direction is None or needs is None else needs.topic
    return RankingFeatures(arrays, cosine, reading.question, topic)


def _inherit_from_superseded(arrays: dict[str, Floats], layout: Layout) -> None:
    """A memory gets at least the topical features of the one that it superseded.

    "I live in Leeds" is close to a question about nearby plumbers; "we finally moved to Bristol" is not.
    """
    if len(layout.overtaken):
        for name in INHERITED:
            arrays[name] = arrays[name].copy()
            np.maximum.at(arrays[name], layout.overtaking, arrays[name][layout.overtaken])


def _zeros(layout: Layout) -> Floats:
    return np.zeros(layout.size, dtype=np.float32)


def _query_terms(corpus: Corpus, text: str) -> tuple[list[int], Counter[str]]:
    """The speakers that the question names, and its other terms in order of first appearance."""
    counts = Counter(dict.fromkeys(terms(text), 1))
    folded = fold(text)
    named = []
    for label, number in corpus.names.labels.items():
        if label in folded and set(label_terms := terms(label)) <= counts.keys():
            named.append(number)
            for term in label_terms:
                del counts[term]
    return named, counts


def _dense(layout: Layout, cosine: Floats) -> dict[str, Floats]:
    unrelated = _unrelated(cosine)
    own = (cosine - unrelated) / COSINE_STEP
    around: Floats = (
        windowed(cosine[None], layout.link)[0] / layout.laid.window_norms if layout.has_neighbours else cosine
    )
    best = np.maximum.reduceat(own, layout.session_starts)[layout.session]
    return {"dense": own, "window_dense": (around - unrelated) / COSINE_STEP, "session_dense": best}


def _unrelated(cosine: Floats) -> float:
    """Of an unrelated memory, as most are: about the median. Other models than the packaged one find all similar."""
    n = len(cosine)
    halves = np.partition(cosine, ((n - 1) // 2, n // 2))
    middle = float((halves[(n - 1) // 2] + halves[n // 2]) * np.float32(0.5))
    return max(COSINE_UNRELATED, (n * middle + UNRELATED_MEMORIES * COSINE_UNRELATED) / (n + UNRELATED_MEMORIES))


def _lexical(corpus: Corpus, layout: Layout, words: Counter[str]) -> dict[str, Floats]:
    own, around = _zeros(layout), _zeros(layout)
    by_session = np.zeros(len(layout.session_starts), dtype=np.float32)
    held = [(number, weight) for number, weight in _weighed(corpus, layout, words) if number >= 0]
    counted = np.zeros((len(held) if layout.has_neighbours else 0, layout.size), dtype=np.float32)
    for place, (number, weight) in enumerate(held):
        start, end = layout.laid.posting_starts[number], layout.laid.posting_starts[number + 1]
        rows, counts = layout.laid.posting_rows[start:end], layout.laid.posting_counts[start:end]
        own[rows] += weight * (counts / (counts + layout.saturation[rows]))
        in_session = np.bincount(layout.session[rows], weights=counts, minlength=len(by_session))
        by_session += weight * in_session / (in_session + layout.session_saturation)
        if layout.has_neighbours:
            counted[place, rows] = counts
    if len(counted):
        near = windowed(counted, layout.link)
        weights = np.array([weight for _, weight in held], dtype=np.float32)[:, None]
        around = (weights * near / (near + layout.window_saturation)).sum(axis=0)
    scale = (1.0 + BM25_SATURATION) / BM25_STEP
    return {
        "lexical": own * scale,
        "window_lexical": (around if layout.has_neighbours else own) * scale,
        "session_lexical": by_session[layout.session] * scale,
    }


def _weighed(corpus: Corpus, layout: Layout, words: Counter[str]) -> list[tuple[int, float]]:
    """Each term's number (-1: in no memory) and weight; of a long question only the rarest, in their order."""
    found = []
    total = layout.size + BACKGROUND_MEMORIES
    for word in words:
        number = corpus.names.terms.get(word, -1)
        held = 0
        if 0 <= number < len(layout.laid.posting_starts) - 1:
            held = int(layout.laid.posting_starts[number + 1] - layout.laid.posting_starts[number])
        weight = float(np.log1p((total - held + 0.5) / (held + 0.5)))
        if len(word) == 1 and is_gram(word):
            weight *= UNSPACED_CHARACTER
        found.append((number if held else -1, weight))
    if len(found) <= QUERY_TERMS_MAX:
        return found
    floor = sorted((weight for _, weight in found), reverse=True)[QUERY_TERMS_MAX - 1]
    return [item for item in found if item[1] >= floor][:QUERY_TERMS_MAX]


def _temporal(layout: Layout, question: TimeQuestion) -> dict[str, Floats]:
    match = _zeros(layout)
    for span in question.spans:
        late = np.maximum(layout.facts["said_at"] - span.end, 0.0) / (AFTERWARDS_DAYS * DAY)
        inside = (layout.facts["said_at"] >= span.start) * np.exp(-late)
        match = np.maximum(match, inside.astype(np.float32))
    is_dated = layout.facts["is_dated"]
    return {"time": match, "when": is_dated * np.float32(question.asks_when), "dated": is_dated}


def _answer(layout: Layout, dense: Floats) -> Floats:
    """High for the memory after one that resembles the question: a question is often followed by its answer."""
    answer = _zeros(layout)
    if layout.has_neighbours:
        answer[1:] = dense[:-1] * layout.facts["is_question"][:-1] * layout.is_linked[1:]
    return answer


def _of_the_memory(layout: Layout, scope: Scope, now: float) -> dict[str, Floats]:
    """Features that do not depend on the question."""
    seconds = np.array([HALF_LIFE_DAYS[name] for name in HALF_LIFE_CLASSES]) * DAY
    age = np.maximum(now - layout.facts["said_at"], 0.0)
    own = _zeros(layout)
    if scope.session_id:  # rows are sorted by session
        first = bisect_left(layout.sessions, scope.session_id)
        own[first : bisect_right(layout.sessions, scope.session_id, lo=first)] += 0.5
    if scope.project_id:
        own += 0.5 * (layout.projects == layout.project_numbers.get(scope.project_id, -1))
    if scope.agent_id:
        own += 0.5 * (layout.agents == layout.agent_numbers.get(scope.agent_id, -1))
    return {
        "recency": np.exp2(-age / seconds[layout.facts["half_life_class"]]).astype(np.float32),
        "importance": layout.facts["importance"] - np.float32(0.5),
        "confidence": layout.facts["confidence"] - np.float32(1.0),
        "scope": own,
        "correction": layout.facts["is_correction"],
        "expiry": -(layout.facts["ends_at"] <= now).astype(np.float32),
    }
