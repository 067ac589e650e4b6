"""Ranking: selects the memories that go into the note, best first, within the token budget. Pure and deterministic.

`rank` scores every memory of a corpus; `rank_found` scores the results of a plain vector search; `select` cuts
irrelevant memories, drops repetitions and fills the budget. Superseded memories are excluded unless the question is
about the past. It must never return a memory of another project, whatever the corpus holds.

No memory resembles "What do you know about me?", so that for a question about a whole nothing is compared with it: the
order of an `overview` is that of a profile, and what a profile leaves out follows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import overload

import numpy as np
import numpy.typing as npt

from memory.chat.plain_lines import LINE_CHARACTERS_MAX
from memory.language import wants_several
from memory.model import Candidate, CandidateVerdict, Memory, Question, Record, Selection, Vector
from memory.model.claim_filters import ClaimFilter
from memory.model.recalled import AskedWhole
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.features import RankingFeatures, TextFeatures, add_vector_features, text_features
from memory.recall.ranking.layout import Layout
from memory.recall.ranking.lexical import terms, wording
from memory.recall.ranking.rows import HALF_LIFE_CLASSES, NOT_COUNTED, Floats, Places
from memory.recall.ranking.superseded_in_notes import review_notes
from memory.recall.ranking.weights import DEFAULT_RANKING, NAMES, PARTS, TOPICAL, Bar, RankingWeights, Weights
from memory.service.profile_layout import by_importance

WHOLE_EXAMINED_MAX = 300  # of a chat's corpus, the most important, and the latest of those: sorted in 5 ms
CROWD_MAX = 16  # memories from which their number says no more
CANDIDATES_MAX = 200  # memories that become candidates with all parts of their score; REST may ask for as many
COST_EXPONENT = 0.5  # when a budget is filled, a memory four times as long must be twice as likely to be relevant
SAME_SUBJECT_SHARE = 0.5  # of the terms of the shorter of two memories
# Candidates skipped because they did not fit: counting more tokens costs more than filling the last gap gains.
PASSED_OVER_MAX = 12

_PLACES_OF_TOPICAL = np.array([NAMES.index(name) for name in TOPICAL])
_PLACES_BY_PART = np.array([NAMES.index(name) for kinds in PARTS.values() for name in kinds])
_STARTS_OF_PARTS = np.cumsum([0, *map(len, PARTS.values())])[:-1]


class Scored(Sequence[Candidate]):
    """The best rows of a corpus, best first. Each becomes a `Candidate` only when it is accessed, which few are."""

    __slots__ = ("_layout", "_made", "_parts", "_rows", "_scores", "ids")

    def __init__(self, layout: Layout, rows: Places, scores: Floats, parts: Floats) -> None:
        """`scores`: one for each row. `parts`: shape `(rows, len(PARTS))`."""
        self.ids = tuple(map(layout.ids.__getitem__, rows.tolist()))
        self._layout, self._rows, self._scores, self._parts = layout, rows, scores, parts
        self._made: dict[int, Candidate] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Candidate]: ...
    def __getitem__(self, place: int | slice) -> Candidate | Sequence[Candidate]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        made = self._made.get(place)
        if made is None:
            made = self._made[place] = self._candidate(place)
        return made

    def _candidate(self, place: int) -> Candidate:
        layout, row = self._layout, int(self._rows[place])
        tokens = int(layout.facts["line_tokens"][row])
        return Candidate(
            memory=layout.memories[row],
            score=float(self._scores[place]),
            parts=dict(zip(PARTS, self._parts[place].tolist(), strict=True)),
            tokens=None if tokens == NOT_COUNTED else tokens,
            wording=int(layout.facts["wording"][row]),
        )


@dataclass(frozen=True, slots=True)
class Ranked:
    """What was found, as far as the corpus holds it."""

    candidates: Sequence[Candidate] = ()  # best first; the next four in the same order
    odds: tuple[float, ...] = ()  # the log odds that the question needs it
    is_relevant: tuple[bool, ...] = ()  # whether those pass
    cosines: tuple[float, ...] = ()
    is_near: tuple[bool, ...] = ()  # whether it may fill a short note although it does not pass; () where none may
    asks_several: bool = False  # the question counts, compares, orders or lists, so that it needs a longer note
    corrections: tuple[str, ...] = ()  # ids of candidates that superseded memories in earlier notes
    in_notes: tuple[Memory, ...] = ()  # memories in earlier notes that are still valid
    is_overview: bool = False  # the question asks about a whole: nothing was compared with it

    @property
    def ids(self) -> tuple[str, ...]:
        made = self.candidates
        return made.ids if isinstance(made, Scored) else tuple(candidate.memory.id for candidate in made)


def rank(
    corpus: Corpus,
    asked: Question,
    vector: Vector,
    *,
    ranking: RankingWeights = DEFAULT_RANKING,
    limit: int = CANDIDATES_MAX,
    reading: TextFeatures | None = None,
) -> Ranked:
    """The best `limit` of what the scope may see, and what superseded memories in earlier notes.

    `reading`: the result of `read_ahead` for the same question; ignored if the corpus changed since.
    """
    layout = corpus.prepare()
    text = asked.query.text
    if not layout.size or not text.strip():
        return Ranked()
    if reading is None or reading.layout is not layout:
        reading = text_features(corpus, layout, asked)
    evidence = add_vector_features(corpus, reading, vector, needs=ranking.needs)
    asks_about_past = evidence.question.asks_about_past
    is_open = open_rows(layout, asked, asks_about_past=asks_about_past, claimed=reading.claimed)
    weighed = np.stack([evidence.arrays[name] for name in NAMES])
    weighed *= _column(ranking.weights)
    score = np.where(is_open, weighed.sum(axis=0), -np.inf)
    rows = _corrections_first(_best(score, limit), layout)
    if not len(rows):
        return Ranked()
    before = review_notes(layout, asked.in_notes)
    corrections = np.array([row for row in before.corrections if is_open[row]], dtype=np.intp)
    best_count = len(rows)
    if len(corrections):
        rows = np.concatenate([rows, corrections[~np.isin(corrections, rows)]])
    weighed = weighed[:, rows]
    bar = ranking.bar
    odds = _odds(weighed[_PLACES_OF_TOPICAL].sum(axis=0), evidence, rows, memories=layout.size, bar=bar)
    best_odds = odds[:best_count].max()
    passes = (odds >= bar.each) & (odds >= bar.beside(best_odds)) & (best_odds >= bar.best)
    passes |= evidence.arrays["manner"][rows] > 0
    asks_several = wants_several(text)
    near = (odds >= bar.several_each) & (odds >= best_odds - bar.several_margin) & (best_odds >= bar.best)
    parts = np.add.reduceat(weighed[_PLACES_BY_PART], _STARTS_OF_PARTS, axis=0).T
    return Ranked(
        candidates=Scored(layout, rows, score[rows], parts),
        odds=tuple(odds.tolist()),
        is_relevant=tuple(passes.tolist()),
        cosines=tuple(evidence.cosine[rows].tolist()),
        is_near=tuple((near & ~passes).tolist()) if asks_several else (),
        asks_several=asks_several,
        corrections=tuple(layout.ids[row] for row in corrections),
        in_notes=before.still_valid,
    )


def _odds(topic: Floats, evidence: RankingFeatures, rows: Places, *, memories: int, bar: Bar) -> Floats:
    """That the question needs each of these rows. The more memories, the likelier that one resembles any question."""
    doublings = math.log2(max(1, min(memories, CROWD_MAX)))
    if evidence.topic is None:
        return bar.topic * (topic - np.float32(bar.doubling * doublings)) - np.float32(bar.unjudged)
    odds: Floats = evidence.topic * topic + evidence.arrays["needed"][rows]
    return odds - np.float32(bar.doubling * (doublings - math.log2(bar.memories)))


def read_ahead(corpus: Corpus, asked: Question, *, claimed: npt.NDArray[np.bool_] | None = None) -> TextFeatures | None:
    """What `rank` derives from the question's words; None without memories. `claimed`: from `rows_with_claim`."""
    layout = corpus.prepare()
    return replace(text_features(corpus, layout, asked), claimed=claimed) if layout.size else None


def rows_with_claim(layout: Layout, claim: ClaimFilter) -> npt.NDArray[np.bool_]:
    """Which rows have it: 0.1 s for 5,000 memories, in a thread if need be."""
    admitted = (claim.admits(one.subject, one.name, one.attribute, one.values) for one in layout.memories)
    return np.fromiter(admitted, dtype=np.bool_, count=layout.size)


def rank_found(found: Sequence[Candidate], asked: Question, *, ranking: RankingWeights = DEFAULT_RANKING) -> Ranked:
    """Score the results of a vector search by the cosine in `parts["dense"]`, for users whose corpus is not loaded.

    The search was limited to the wanted types already; corrections of memories in earlier notes are not looked up.
    """
    # A one-dimensional "vector" per memory: its cosine with the question, multiplied by one.
    cosines = (np.array([one.parts.get("dense", one.score)], dtype=np.float32) for one in found)
    corpus = Corpus((Record(one.memory, cosine) for one, cosine in zip(found, cosines, strict=True)), dimension=1)
    here = replace(asked, memory_types=(), in_notes=())
    return rank(corpus, here, np.ones(1, dtype=np.float32), ranking=ranking)


def overview(corpus: Corpus, asked: Question, *, limit: int, examined: int = WHOLE_EXAMINED_MAX) -> Ranked:
    """The best `limit`, best first; all of them are relevant."""
    layout = corpus.prepare()
    if not layout.size:
        return Ranked()
    is_open = open_rows(layout, asked)
    if asked.whole is AskedWhole.PROJECT:
        is_open &= layout.projects == layout.project_numbers.get(asked.scope.project_id, -1)
    rows = np.flatnonzero(is_open)
    if len(rows) > examined:
        rows = rows[np.lexsort((-layout.facts["said_at"][rows], -layout.facts["importance"][rows].round(1)))[:examined]]
    found = by_importance((layout.memories[int(row)] for row in rows), now=asked.now)[:limit]
    return overview_of(found, in_notes=review_notes(layout, asked.in_notes).still_valid)


def overview_of(memories: Sequence[Memory], *, in_notes: tuple[Memory, ...] = ()) -> Ranked:
    """These memories, in this order."""
    return Ranked(
        candidates=tuple(Candidate(one, 1.0 - place / len(memories)) for place, one in enumerate(memories)),
        odds=(math.inf,) * len(memories),
        is_relevant=(True,) * len(memories),
        cosines=(1.0,) * len(memories),
        in_notes=in_notes,
        is_overview=True,
    )


@dataclass(frozen=True, slots=True)
class Budget:
    tokens: int
    memories: int | None = None  # None: as many as fit
    near_tokens: int = 0  # up to so many, near-relevant candidates follow the relevant ones
    is_filled: bool = False  # no relevance cut; the budget is used up


def select(
    ranked: Ranked,
    budget: Budget,
    *,
    tokens: Callable[[Candidate], int],
    similarity_threshold: float | None = None,
    in_notes: Collection[str] = (),
) -> Selection:
    """The candidates that go into the note, best first, and the reasons for the others. `tokens`: cost of a candidate.

    Corrections come first, relevant or not. What does not fit is skipped, never shortened. `similarity_threshold`: an
    additional cut by cosine. `in_notes`: ids that earlier notes hold; they and their wordings are left out.
    """
    kept, near, cuts = _admitted(ranked, similarity_threshold, in_notes, fill=budget.is_filled)
    if budget.is_filled and budget.memories is None:
        kept.sort(key=lambda i: _cost_of_place(ranked.candidates[i]))
    ids = ranked.ids
    corrections = [i for i, memory_id in enumerate(ids) if memory_id in ranked.corrections]
    kept = [*corrections, *(i for i in (*kept, *near) if i not in corrections)]
    is_filling = frozenset(near) - frozenset(corrections)
    chosen: list[int] = []
    said = {wording(memory.content) for memory in ranked.in_notes}
    left, passed_over = budget.tokens, 0
    for i in kept:
        if len(chosen) == budget.memories:
            cuts[ids[i]] = CandidateVerdict.OVER_LIMIT
        elif passed_over == PASSED_OVER_MAX:
            cuts[ids[i]] = CandidateVerdict.OVER_BUDGET
        elif (said_here := ranked.candidates[i].wording or wording(ranked.candidates[i].memory.content)) in said:
            cuts[ids[i]] = CandidateVerdict.DUPLICATE
        elif (cost := tokens(ranked.candidates[i])) > left:
            cuts[ids[i]] = CandidateVerdict.OVER_BUDGET
            passed_over += 1
        elif i in is_filling and budget.tokens - left + cost > budget.near_tokens:
            cuts[ids[i]] = CandidateVerdict.IRRELEVANT
        else:
            said.add(said_here)
            cuts.pop(ids[i], None)
            chosen.append(i)
            left -= cost
    order = sorted(chosen, key=lambda i: (i not in corrections, i))
    return Selection(tuple(ranked.candidates[i] for i in order), budget.tokens - left, cuts)


def _admitted(
    ranked: Ranked, similarity_threshold: float | None, in_notes: Collection[str], *, fill: bool
) -> tuple[list[int], list[int], dict[str, CandidateVerdict]]:
    """Indexes of the candidates that pass, of those that may fill a short note, and the verdicts of all others."""
    kept: list[int] = []
    near: list[int] = []
    cuts: dict[str, CandidateVerdict] = {}
    for i, memory_id in enumerate(ranked.ids):
        is_close = similarity_threshold is None or ranked.cosines[i] >= similarity_threshold
        if memory_id in in_notes:
            cuts[memory_id] = CandidateVerdict.ALREADY_TOLD
        elif is_close and (fill or ranked.is_relevant[i]):
            kept.append(i)
        elif is_close and ranked.is_near and ranked.is_near[i]:
            near.append(i)
        else:
            cuts[memory_id] = CandidateVerdict.IRRELEVANT
    return kept, near, cuts


def _cost_of_place(candidate: Candidate) -> float:
    """The sort key when a budget is filled, smaller first: a longer memory has to be more likely to be relevant."""
    length = min(len(candidate.memory.content), LINE_CHARACTERS_MAX)
    return COST_EXPONENT * math.log(length) - candidate.score


def open_rows(
    layout: Layout, asked: Question, *, asks_about_past: bool = False, claimed: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.bool_]:
    """Which rows may be returned. `claimed`: the result of `rows_with_claim`, if it is known."""
    scope, memory_types = asked.scope, asked.memory_types
    is_open = np.ones(layout.size, dtype=np.bool_) if asks_about_past else ~layout.is_superseded
    if scope.project_id:
        is_open &= (layout.projects == 0) | (layout.projects == layout.project_numbers.get(scope.project_id, -1))
    if scope.agent_id:
        is_open &= (layout.agents == 0) | (layout.agents == layout.agent_numbers.get(scope.agent_id, -1))
    if memory_types:
        wanted = [number for number, kind in enumerate(HALF_LIFE_CLASSES) if kind in memory_types]
        is_open &= np.isin(layout.facts["half_life_class"], wanted)
    if not asked.claim.is_any:
        is_open &= rows_with_claim(layout, asked.claim) if claimed is None else claimed
    return is_open


@lru_cache(maxsize=16)
def _column(weights: Weights) -> Floats:
    """The weights of all features, shape `(features, 1)`."""
    return np.array([getattr(weights, name) for name in NAMES], dtype=np.float32)[:, None]


def _corrections_first(rows: npt.NDArray[np.intp], layout: Layout) -> npt.NDArray[np.intp]:
    """Put a correction before what it corrects if both have the same subject; otherwise the scores decide."""
    if not layout.facts["is_correction"][rows].any():
        return rows
    order = rows.tolist()
    for correction in [row for row in order if layout.facts["is_correction"][row] and not layout.is_superseded[row]]:
        about = set(terms(layout.memories[correction].content))
        here = order.index(correction)
        corrected = (
            place
            for place, row in enumerate(order[:here])
            if layout.facts["said_at"][row] < layout.facts["said_at"][correction]
            and not layout.facts["is_correction"][row]
            and _is_same_subject(about, layout.memories[row].content)
        )
        first = next(corrected, here)
        order.insert(first, order.pop(here))
    return np.array(order, dtype=np.intp)


def _is_same_subject(about: set[str], content: str) -> bool:
    """Whether most terms of the shorter of the two also occur in the other."""
    other = set(terms(content))
    return len(about & other) > SAME_SUBJECT_SHARE * min(len(about), len(other))


def _best(score: npt.NDArray[np.floating], limit: int) -> npt.NDArray[np.intp]:
    """The rows with the best scores, best first; ties in row order. Rows that may not be returned are left out."""
    if limit < len(score):
        floor = np.partition(score, len(score) - limit)[len(score) - limit]
        rows = np.flatnonzero(score >= floor)
    else:
        rows = np.arange(len(score))
    rows = rows[np.isfinite(score[rows])]
    best: npt.NDArray[np.intp] = rows[np.argsort(-score[rows], kind="stable")][:limit]
    return best
