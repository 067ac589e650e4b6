"""The weights of the ranking and the relevance cut, with their reasons; constants, since nobody knows better ones.

`bench/tune_recall.py` fits those with a range: a softmax over all memories of a conversation, in which a weight says by
how much one unit of its feature raises the log odds that a memory is the one asked for. The ranges are those of five
fits, each on four of five parts of the conversations and evaluated on the fifth; the values are rounded, because the
third digit is noise. Weights that transcripts cannot determine are set by reasoning.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from memory.recall.ranking.needed import Needs


@dataclass(frozen=True, slots=True)
class Weights:
    """One weight per feature of `memory.recall.ranking.features`, by its name."""

    # The memory itself
    dense: float = 0.5  # per step of cosine (0.06); fitted 0.26 to 0.34, more by reason: of single facts it says more
    lexical: float = 0.2  # fitted 0.08 to 0.10, small because `window_lexical` holds the same words
    # The log odds that the message needs it, as far as their embeddings tell (`memory.recall.ranking.needed`)
    needed: float = 0.7
    speaker: float = 2.2  # the question names the speaker; fitted 2.00 to 2.35
    # Its neighbours; for a memory without neighbours this repeats its own features
    window_dense: float = 0.45  # fitted 0.35 to 0.42: a turn is often understood only with its neighbours
    window_lexical: float = 1.0  # fitted 0.92 to 1.09
    session_dense: float = 0.25  # of the best turn of its session; fitted 0.29 to 0.39
    session_lexical: float = 0.6  # of its session as a whole; fitted 0.50 to 0.54
    answer: float = 0.3  # follows a question that resembles the one asked, per step of cosine; fitted 0.20 to 0.26
    # Time
    time: float = 3.8  # said in the time that the question names, or within days after; fitted 3.47 to 3.85
    when: float = 1.7  # names a time, and the question asks for one; fitted 1.53 to 1.73
    dated: float = 0.5  # names a time at all; fitted 0.47 to 0.68: questions are more often about events
    # Form
    question: float = -0.5  # ends with a question mark, so it states little; fitted -0.51 to -0.79
    first_person: float = 0.6  # speaks of oneself; fitted 0.40 to 0.60
    manner: float = 1.0  # says how answers should be, where something is to be written: enough without a shared topic
    # Independent of the question: enough to order equals, never enough to outweigh better evidence
    recency: float = 0.3  # of something said just now; halves per half-life
    importance: float = 0.4  # from -0.2 (importance 0) to +0.2 (importance 1) as it is
    confidence: float = 0.5  # confidence 0.5 loses a quarter of a clear step
    scope: float = 0.3  # of the asking project or agent, relative to general ones
    correction: float = 0.3  # corrections by the user come first
    expiry: float = 0.7  # subtracted for an expired memory: affects its rank only


@dataclass(frozen=True, slots=True)
class Bar:
    """The log odds that a message needs a memory from which it is told, beside which others."""

    best: float = -2.0  # of the best one, below which there is no note: a missing memory costs more than one too many
    each: float = -2.0  # below it a memory is left out even if others are relevant
    margin: float = 2.0  # distance from the best memory beyond which one is left out that is not `sure`
    sure: float = 0.0  # needed rather than not, whatever the best one is
    # Likewise for memories that fill a short note after those that pass, where a question counts, compares, orders or
    # lists: it names what several memories have in common
    several_each: float = -4.0
    several_margin: float = 6.0
    several_tokens: int = 500
    doubling: float = 0.39  # lost each time the number of memories doubles, up to 16; fitted
    memories: int = 12  # of the users on whom the odds were trained
    # Where no `needs` are known: the share of the topical evidence in the odds, and what a user's only memory loses
    topic: float = 0.5
    unjudged: float = 2.65

    def beside(self, best: float) -> float:
        """The log odds from which a memory passes beside the best one."""
        return min(best - self.margin, self.sure)


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """`needs`: of the embedding model; None where nothing is trained for it."""

    weights: Weights = Weights()
    bar: Bar = Bar()
    needs: Needs | None = None


# The number of days after which half of `Weights.recency` is left, by memory type
HALF_LIFE_DAYS = {
    "episodic": 60.0,  # events: after two months they are asked for by topic
    "semantic": 365.0,  # valid for about a year or much longer
    "procedural": 365.0,
    "reflective": 180.0,  # half of a fact's, since they are inferred
}
UNSPACED_CHARACTER = 0.5  # of one shared character in scripts without spaces, where a pair of them weighs 1
# Of a rewritten question, where the plain one weighs 1: of 16 follow-ups the plain one found 7, the rewritten one 16
# (15 first), both together 16 first.
REWRITTEN = 2.0

PARTS: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("dense", "lexical", "needed", "speaker")},
    "neighbours": ("window_dense", "window_lexical", "answer"),
    "session": ("session_dense", "session_lexical"),
    "time": ("time", "when", "dated"),
    "form": ("question", "first_person", "manner"),
    **{name: (name,) for name in ("recency", "importance", "confidence", "scope", "correction", "expiry")},
}
"""The score parts that a receipt shows, and the features behind each."""

TOPICAL = tuple("dense lexical speaker window_dense window_lexical session_dense session_lexical time".split())
"""The features that say whether a memory relates to the question; the others only order those that do."""

NAMES = tuple(field.name for field in fields(Weights))
DEFAULT_RANKING = RankingWeights()
