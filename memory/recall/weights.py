"""How much each kind of evidence counts, and why. Tuned by `bench/tune_recall.py`, cross-validated by conversation.

The fit is a softmax over all memories of a conversation: a weight says by how much one unit of a kind raises the log
odds that a memory is the one asked for. Each of five fits on four conversations gave every weight within the range
noted beside it; the value here is rounded, because the third digit is noise. What a transcript cannot teach is set by
reason.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Weights:
    """One weight per kind of `evidence.gather`, by its name."""

    # What the memory itself says
    dense: float = 0.3  # per 0.1 of cosine; fitted 0.24-0.33
    lexical: float = 0.2  # own words; fitted 0.19-0.25, small because the window below holds the same words
    concept: float = 1.0  # fitted 0.23-0.42 on English talk; other languages have little else, and 0.5-2 do equally
    aspect: float = 1.0  # fitted 0.85-1.3; "who" and "when" are no topic, so no relevance comes of it
    speaker: float = 2.2  # the question names the one who speaks; fitted 2.3-2.5
    # What stands around it; for a memory that stands alone this repeats its own evidence
    window_dense: float = 0.45  # fitted 0.42-0.51: a turn is often understood only with its neighbours
    window_lexical: float = 1.0  # fitted 0.95-1.2
    session_dense: float = 0.25  # best turn of the session; fitted 0.21-0.25
    session_lexical: float = 0.6  # fitted 0.57-0.60
    answer: float = 0.3  # follows a question that resembles the one asked, per 0.1 of cosine; fitted 0.31-0.36
    # When
    time: float = 3.8  # said in, or within days after, the time that the question names; fitted 3.6-3.9
    when: float = 1.7  # names a time, and the question asks for one; fitted 1.55-1.75
    dated: float = 0.5  # names a time at all: events are asked for more often than moods; fitted 0.46-0.64
    # How it is put
    question: float = -0.4  # ends as a question, so it tells little; fitted -0.33 to -0.59
    first_person: float = 0.6  # speaks of oneself; fitted 0.57-0.76
    manner: float = 1.0  # says how answers should be, and one is asked for: it goes along without any topic
    # What it is worth, whatever is asked: enough to order equals, never enough to beat better evidence
    recency: float = 0.3  # of something said just now; halves per half-life
    importance: float = 0.4  # from -0.2 (importance 0) to +0.2 (1)
    confidence: float = 0.5  # a guess (0.5) loses a quarter of a clear step
    scope: float = 0.3  # of the very project or agent that asks, against general ones
    correction: float = 0.3  # what the user set right comes first
    expiry: float = 0.7  # what ended loses rank, never its place in memory


PARTS: dict[str, tuple[str, ...]] = {
    "dense": ("dense",),
    "lexical": ("lexical",),
    "concept": ("concept", "aspect"),
    "speaker": ("speaker",),
    "neighbours": ("window_dense", "window_lexical", "answer"),
    "session": ("session_dense", "session_lexical"),
    "time": ("time", "when", "dated"),
    "form": ("question", "first_person", "manner"),
    "recency": ("recency",),
    "importance": ("importance",),
    "confidence": ("confidence",),
    "scope": ("scope",),
    "correction": ("correction",),
    "expiry": ("expiry",),
}
"""The score parts that a receipt shows, and the kinds of evidence behind each."""

TOPICAL = (
    "dense",
    "lexical",
    "concept",
    "speaker",
    "window_dense",
    "window_lexical",
    "session_dense",
    "session_lexical",
    "time",
)
"""The kinds that say whether a memory bears on the question at all; the others only order those that do."""


@dataclass(frozen=True, slots=True)
class Bar:
    """How much topical evidence, in the unit of the weights, makes a memory relevant: where the odds are even.

    Fitted by logistic regression on questions with and without an answer among the memories. Of all pairs of one
    each, left out of the fit, the one with an answer has more evidence in 0.93. Further features (the lead over the
    next memory, the share of words found, the kinds apart) did not help.
    """

    even: float = 1.7
    slope: float = 1.6  # log odds per unit
    personal: float = -0.5  # "my", "we": the question is about the user
    task: float = -1.2  # "write", "plan": preferences help even where no word is shared
    general: float = 0.4  # "what is the", "why do": asks about the world
    courtesy: float = 3.0  # nothing but thanks or a greeting: only overwhelming evidence may answer it
    unspaced: float = -0.2  # no cosine there, so evidence comes in smaller numbers
    each: float = 0.3  # below this a memory is left out even if others are relevant
    margin: float = 4.0  # and so it is when it falls this far behind the best


NAMES = tuple(field.name for field in fields(Weights))
