"""Which summaries of past conversations, and which passages of the assistant's answers, answer a question about them.

A time in the question restricts them; then those count that resemble its topic, and if it names none, the latest. Of
these answers, the passages that share words with the question come first. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from memory.language import content_words
from memory.language.restating import begins_word, folded
from memory.model import Candidate, Memory, Scope, SessionSummary, StoredSummary, Vector
from memory.model.raw_words import passages_of
from memory.recall.notes.past_talk_notes import Passage, dates
from memory.recall.ranking.temporal import Span, time_question

WORD = 0.2  # for a content word that question and summary share
WORDS_MAX = 2
TOPICAL_MIN = 0.3  # likeness from which a summary is about what the question names; of others it rarely passes 0.2
TOPICAL_BELOW_BEST = 0.12  # how far below the best one that still counts
LATEST_MAX, OF_TIME_MAX = 2, 4  # without a topic: of all, and of the time that the question names
ANSWERS_MAX = 64  # the nearest by vector: those are compared by words
# Of the cosine of an answer plus its share of the question's words; `bench/raw_words.py` prints what each costs.
SHARE = 0.4
ANSWER_MIN, ANSWER_BELOW_BEST = 0.4, 0.1
PASSAGES_MAX = 24  # several times what fits into a note
ELSEWHEN_MIN = 0.5  # for an answer of another time than the question names: a year may also be a topic


@dataclass(frozen=True, slots=True)
class PastTalkQuestion:
    text: str
    vector: Vector
    scope: Scope
    now: float  # Unix seconds
    answers_here: tuple[str, ...] = ()  # what the assistant said in the conversation in which it is asked

    @property
    def spans(self) -> tuple[Span, ...]:
        """The times that it names; a month without a year means that month of several years."""
        return time_question(self.text, now=self.now).spans


def answering(question: PastTalkQuestion, stored: Sequence[StoredSummary]) -> list[SessionSummary]:
    """Best first; `stored`: newest first. Never of another project or agent, nor of the conversation itself."""
    open_to = [one for one in stored if _is_in(question.scope, one.summary)]
    if spans := question.spans:
        open_to = [one for one in open_to if any(_overlaps(one.summary, span) for span in spans)]
    if not open_to:
        return []
    likeness = _likeness(question, open_to)
    best = max(likeness)
    if best >= TOPICAL_MIN:
        order = sorted(range(len(open_to)), key=lambda place: -likeness[place])
        near = [place for place in order if likeness[place] >= max(TOPICAL_MIN, best - TOPICAL_BELOW_BEST)]
        return [open_to[place].summary for place in near[:OF_TIME_MAX]]
    return [one.summary for one in open_to[: OF_TIME_MAX if spans else LATEST_MAX]]


def answers_to(question: PastTalkQuestion, found: Sequence[Candidate]) -> list[Passage]:
    """Passages, best first; `found`: answers by likeness. Never of the conversation itself."""
    others = [one for one in found if _is_said_elsewhere(question, one.memory)]
    chosen = _chosen(question, by_words(question.text, others))
    cut = [
        Passage(answer, text, (rank, number))
        for rank, answer in enumerate(chosen)
        for number, text in enumerate(passages_of(answer.content))
    ]
    shares = _shares(question.text, [one.text for one in cut])
    return [cut[place] for place in sorted(range(len(cut)), key=lambda place: -shares[place])[:PASSAGES_MAX]]


def by_words(question: str, found: Sequence[Candidate]) -> list[Candidate]:
    """Answers by likeness and by the words that they, or what they reply to, share with the question; best first."""
    said = [" ".join((*(e.quote for e in one.memory.evidence), one.memory.content)) for one in found]
    shares = _shares(question, said)
    scored = [replace(one, score=one.score + SHARE * share) for one, share in zip(found, shares, strict=True)]
    return sorted(scored, key=lambda one: -one.score)


def _chosen(question: PastTalkQuestion, ranked: Sequence[Candidate]) -> list[Memory]:
    spans = question.spans
    is_of_time = any(span.start <= one.memory.said_at < span.end for one in ranked for span in spans)
    least = ELSEWHEN_MIN if spans and not is_of_time else ANSWER_MIN
    best = max((one.score for one in ranked), default=0.0)
    if best >= least:
        return [one.memory for one in ranked if one.score >= max(least, best - ANSWER_BELOW_BEST)]
    if spans:
        return [one.memory for one in ranked] if is_of_time else []
    newest = sorted({one.memory.said_at for one in ranked})[-LATEST_MAX:]
    return [one.memory for at in reversed(newest) for one in ranked if one.memory.said_at == at]


def time_named(spans: Sequence[Span]) -> str:
    """The days of the time that a question names, in brackets; "" if it may be several, or has no end."""
    [*others, span] = spans
    if others or not (math.isfinite(span.start) and math.isfinite(span.end)):
        return ""
    return f" ({dates(span.start, span.end - 1)})"


def _is_said_elsewhere(question: PastTalkQuestion, said: Memory) -> bool:
    is_here = question.scope.session_id == said.session_id
    return not is_here and not any(said.content in answer for answer in question.answers_here)


def _is_in(scope: Scope, summary: SessionSummary) -> bool:
    """As for memories: a project (an agent) sees its own and those without one; without one, all are seen."""
    is_of_project = not scope.project_id or summary.project_id in ("", scope.project_id)
    is_of_agent = not scope.agent_id or summary.agent_id in ("", scope.agent_id)
    return is_of_project and is_of_agent and summary.session_id != scope.session_id


def _overlaps(summary: SessionSummary, span: Span) -> bool:
    return summary.first_at < span.end and summary.last_at >= span.start


def _likeness(question: PastTalkQuestion, stored: Sequence[StoredSummary]) -> list[float]:
    words = content_words(question.text)
    shared = [len(_begun(words, f"{one.summary.title} {one.summary.text}")) for one in stored]
    cosines = [_cosine(question.vector, one.vector) for one in stored]
    return [cosine + WORD * min(WORDS_MAX, count) for cosine, count in zip(cosines, shared, strict=True)]


def _cosine(first: Vector, second: Vector | None) -> float:
    """0 for a summary whose vector another model made."""
    return 0.0 if second is None or first.shape != second.shape else max(0.0, float(np.dot(first, second)))


def _shares(question: str, texts: Iterable[str]) -> list[float]:
    """The share, 0..1, of the question's content words that each text has; what many have counts little (IDF)."""
    words = content_words(question)
    had = [_begun(words, text) for text in texts]
    counts = Counter(chain.from_iterable(had))
    weights = {word: max(0.0, math.log((ANSWERS_MAX + 1) / (counts[word] + 0.5))) for word in words}
    total = math.fsum(weights.values()) or 1.0
    return [math.fsum(weights[word] for word in one) / total for one in had]


def _begun(words: frozenset[str], text: str) -> list[str]:
    """Those of these words, or stems, with which a word of the text begins."""
    plain = folded(text)
    return [word for word in words if begins_word(word, plain)]
