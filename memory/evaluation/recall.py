"""Scores which memories are selected for a message: the ranking of chats, compared with baselines.

`evaluate_recall` accepts either format and returns a dict for `report.py`. It embeds through the port and ranks in
memory: the figures depend on neither a store nor a clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from memory.evaluation.dataset import USER, RecallCase, Talk, TalkQuestion, holds_talks, read_recall, read_talks
from memory.evaluation.records import Progress, counted, ignore_progress
from memory.evaluation.score import (
    CHARACTERS_PER_TOKEN,
    TALK_RECALL_AT,
    by_group,
    evidence_recall,
    figures,
    mean,
    score_case,
    within_budget,
)
from memory.model import Candidate, Conversation, Memory, Message, Query, Question, Record, Role, Scope, Vector
from memory.ports import Embedder
from memory.ports.paging import batched
from memory.recall.query import build_query
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.features import add_vector_features, text_features
from memory.recall.ranking.ranking import CANDIDATES_MAX, Budget, rank, select
from memory.recall.ranking.weights import DEFAULT_RANKING, RankingWeights

OURS = "memproxy"
BUDGETS = (100, 200, 400, 600, 800, 1_200, 1_600, 2_000)
NOTE_BUDGET = Budget(int(800 * CHARACTERS_PER_TOKEN))  # of a chat: what is relevant, and within it
EMBED_TEXTS = 64  # per call of the embedder
_SCOPE = Scope(USER)
_FUSED_DENSE, _FUSED_WORDS = 0.7, 0.3  # a common weighting of standardised scores

Order: TypeAlias = Callable[[float], Sequence[int]]
"""A token budget (infinite: none) → positions, best first."""


async def evaluate_recall(
    path: Path, embedder: Embedder, *, ranking: RankingWeights = DEFAULT_RANKING, progress: Progress = ignore_progress
) -> dict[str, Any]:
    """Figures for a file of facts (JSON Lines) or of talks (LoCoMo's JSON). Raises `BadInput`, `Unavailable`."""
    if holds_talks(path):
        return await _evaluate_talks(read_talks(path), embedder, ranking, progress)
    return await _evaluate_facts(read_recall(path), embedder, ranking, progress)


async def _evaluate_facts(
    cases: Sequence[RecallCase], embedder: Embedder, ranking: RankingWeights, progress: Progress
) -> dict[str, Any]:
    scored = []
    for case in counted(cases, progress):
        question = Message(role=Role.USER, content=case.question)
        query = build_query(Conversation(messages=(*case.history, question)))
        vectors = await _embedded([memory.content for memory in case.memories], embedder)
        asked = await _embedded([query.text], embedder, as_query=True)
        corpus = _corpus(case.memories, vectors, embedder.dimension)
        ranked = rank(corpus, Question(query, _SCOPE, case.now), asked[query.text], ranking=ranking)
        places = {memory.id: place for place, memory in enumerate(case.memories)}
        chosen = select(ranked, NOTE_BUDGET, tokens=characters)
        scored.append(score_case(case, [places[candidate.memory.id] for candidate in chosen.candidates]))
    return {
        "kind": "facts",
        "all": figures(scored),
        "by_language": by_group(scored, lambda score: score.case.language, figures),
        "by_tag": by_group(scored, lambda score: score.case.tag, figures),
        "records": [
            {"id": one.case.id, "returned": one.returned, "recall@5": one.recall[5] if one.recall else None}
            for one in scored
        ],
    }


async def _evaluate_talks(
    talks: Sequence[Talk], embedder: Embedder, ranking: RankingWeights, progress: Progress
) -> dict[str, Any]:
    total = sum(len(talk.questions) for talk in talks)
    scored: list[tuple[str, int, dict[str, dict[str, float]]]] = []
    for talk in talks:
        contents = [memory.content for memory in talk.memories]
        vectors = await _embedded(contents, embedder)
        asked = await _embedded([question.text for question in talk.questions], embedder, as_query=True)
        corpus = _corpus(talk.memories, vectors, embedder.dimension)
        for question in talk.questions:
            orders = _orders(corpus, talk, question, asked[question.text], ranking)
            scores = {name: _talk_scores(question, order, contents) for name, order in orders.items()}
            scored.append((talk.id, question.category, scores))
            progress(len(scored), total)
    names = list(scored[0][2]) if scored else []
    mine = [(talk_id, category, scores[OURS]) for talk_id, category, scores in scored]
    return {
        "kind": "talks",
        "questions": total,
        "budgets": list(BUDGETS),
        "methods": {name: _means([scores[name] for _, _, scores in scored]) for name in names},
        "by_talk": {talk.id: _means([s for talk_id, _, s in mine if talk_id == talk.id]) for talk in talks},
        "by_category": {str(n): _means([s for _, c, s in mine if c == n]) for n in sorted({c for _, c, _ in mine})},
    }


def _orders(
    corpus: Corpus, talk: Talk, question: TalkQuestion, vector: Vector, ranking: RankingWeights
) -> dict[str, Order]:
    """Every method on the same memories. The corpus keeps rows in order of time, as the talk does."""
    asked, layout = Question(Query(question.text), _SCOPE, talk.asked_at), corpus.prepare()
    places = {memory.id: place for place, memory in enumerate(talk.memories)}
    rows = np.array([places[memory.id] for memory in layout.memories])
    evidence = add_vector_features(corpus, text_features(corpus, layout, asked), vector, needs=ranking.needs)
    cosine, words = evidence.cosine, evidence.arrays["lexical"]
    fused = _FUSED_DENSE * _standard(cosine) + _FUSED_WORDS * _standard(words)
    ranked = rank(corpus, asked, vector, ranking=ranking)

    def ours(budget: float) -> list[int]:
        if math.isinf(budget):
            return [places[candidate.memory.id] for candidate in ranked.candidates]
        size = Budget(int(budget * CHARACTERS_PER_TOKEN), is_filled=True)
        chosen = select(ranked, size, tokens=characters)
        return [places[candidate.memory.id] for candidate in chosen.candidates]

    return {
        "cosine ≥ 0.7": _fixed(rows, cosine, floor=0.7),
        "cosine ≥ 0.6": _fixed(rows, cosine, floor=0.6),
        "dense": _fixed(rows, cosine),
        "BM25": _fixed(rows, words, floor=1e-9),
        "fused": _fixed(rows, fused),
        OURS: ours,
    }


def _fixed(rows: npt.NDArray[np.intp], score: npt.NDArray[np.floating], *, floor: float = -math.inf) -> Order:
    """The order by a score, whatever the budget; below the floor nothing is returned."""
    best = np.argsort(-score, kind="stable")[:CANDIDATES_MAX]
    order = [int(rows[i]) for i in best if score[i] >= floor]
    return lambda budget: order


def _talk_scores(question: TalkQuestion, order: Order, contents: Sequence[str]) -> dict[str, float]:
    best = order(math.inf)
    scores = {f"recall@{k}": evidence_recall(question, best[:k]) for k in TALK_RECALL_AT}
    for budget in BUDGETS:
        kept = within_budget(order(budget), contents, budget)
        scores[f"{budget} tokens"] = evidence_recall(question, kept)
    return scores


def _means(scores: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    return {name: mean(score[name] for score in scores) for name in (scores[0] if scores else ())}


def _standard(score: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    out: npt.NDArray[np.floating] = (score - score.mean()) / (score.std() + 1e-9)
    return out


def characters(candidate: Candidate) -> int:
    """Of its memory's text: what a budget is measured in here."""
    return len(candidate.memory.content)


def _corpus(memories: Sequence[Memory], vectors: Mapping[str, Vector], dimension: int) -> Corpus:
    records = (Record(memory, vectors[memory.content]) for memory in memories)
    return Corpus(records, dimension=dimension)


async def _embedded(texts: Sequence[str], embedder: Embedder, *, as_query: bool = False) -> dict[str, Vector]:
    different = list(dict.fromkeys(texts))
    found: dict[str, Vector] = {}
    for batch in batched(different, EMBED_TEXTS):
        found |= dict(zip(batch, await embedder.embed(batch, is_urgent=False, as_query=as_query), strict=True))
    return found
