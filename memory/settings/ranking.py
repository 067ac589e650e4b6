"""All weights of the ranking and the relevance cut, with their reasons.

The numbers are defined only here, and the ranking uses these very values. `bench/tune_recall.py` fits those described
as `fitted`: a softmax over all memories of a conversation, in which a weight says by how much one unit of its feature
raises the log odds that a memory is the one asked for. The ranges are those of five fits, each on four of five parts of
the conversations and evaluated on the fifth; defaults are rounded, because the third digit is noise. Weights that
transcripts cannot determine are set by reasoning. Declarations only.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

_Weight: TypeAlias = Annotated[float, Meta(ge=-20, le=20)]
_Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
_Days: TypeAlias = Annotated[float, Meta(ge=0.01, le=36_500)]
_Neighbour: TypeAlias = Annotated[float, Meta(ge=0, le=10)]


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """One weight per feature of `memory.recall.ranking.features`, by its name."""

    # The memory itself
    dense: Annotated[
        _Weight,
        Meta(
            description="Per step of cosine (0.06) between question and memory; fitted 0.26 to 0.34 on transcripts, "
            "more by reason: of single facts, cosines say more."
        ),
    ] = 0.5
    lexical: Annotated[
        _Weight,
        Meta(
            description="Words of the question in the memory itself; fitted 0.08 to 0.10, small because "
            "`window_lexical` holds the same words."
        ),
    ] = 0.2
    wanted: Annotated[
        _Weight,
        Meta(
            description="Is of the kind of facts that the question wants, 1 for one that is just that; fitted 1.29 to "
            "1.77 on transcripts, whose turns are of few kinds; single facts are ordered better by more. It is not a "
            "topic and does not count for relevance."
        ),
    ] = 8.0
    speaker: Annotated[_Weight, Meta(description="The question names the speaker; fitted 2.00 to 2.35.")] = 2.2
    # Its neighbours; for a memory without neighbours this repeats its own features
    window_dense: Annotated[
        _Weight,
        Meta(
            description="Per step of cosine of the memory with its neighbours; fitted 0.35 to 0.42: a turn is often "
            "understood only with its neighbours."
        ),
    ] = 0.45
    window_lexical: Annotated[
        _Weight, Meta(description="Words of the question in the memory and its neighbours; fitted 0.92 to 1.09.")
    ] = 1.0
    session_dense: Annotated[
        _Weight, Meta(description="Per step of cosine of the best turn of its session; fitted 0.29 to 0.39.")
    ] = 0.25
    session_lexical: Annotated[
        _Weight, Meta(description="Words of the question in its session as a whole; fitted 0.50 to 0.54.")
    ] = 0.6
    answer: Annotated[
        _Weight,
        Meta(description="Follows a question that resembles the one asked, per step of cosine; fitted 0.20 to 0.26."),
    ] = 0.3
    # Time
    time: Annotated[
        _Weight,
        Meta(description="Said in the time that the question names, or within days after; fitted 3.47 to 3.85."),
    ] = 3.8
    when: Annotated[_Weight, Meta(description="Names a time, and the question asks for one; fitted 1.53 to 1.73.")] = (
        1.7
    )
    dated: Annotated[
        _Weight,
        Meta(description="Names a time at all; fitted 0.47 to 0.68: questions are more often about events."),
    ] = 0.5
    # Form
    question: Annotated[
        _Weight, Meta(description="Ends with a question mark, so it states little; fitted -0.51 to -0.79.")
    ] = -0.5
    first_person: Annotated[_Weight, Meta(description="Speaks of oneself; fitted 0.40 to 0.60.")] = 0.6
    manner: Annotated[
        _Weight,
        Meta(
            description="Says how answers should be, where something is to be written or explained; by reason: one "
            "clear step, enough without a shared topic."
        ),
    ] = 1.0
    # Independent of the question: enough to order equals, never enough to outweigh better evidence
    recency: Annotated[
        _Weight,
        Meta(description="Of something said just now; halves per half-life. By reason: it orders equals, no more."),
    ] = 0.3
    importance: Annotated[
        _Weight, Meta(description="From -0.2 (importance 0) to +0.2 (importance 1) as it is. By reason, likewise.")
    ] = 0.4
    confidence: Annotated[
        _Weight, Meta(description="Confidence 0.5 loses a quarter of a clear step. By reason, likewise.")
    ] = 0.5
    scope: Annotated[
        _Weight, Meta(description="Of the asking project or agent, relative to general ones. By reason, likewise.")
    ] = 0.3
    correction: Annotated[_Weight, Meta(description="Corrections by the user come first. By reason, likewise.")] = 0.3
    expiry: Annotated[
        _Weight, Meta(description="Subtracted for an expired memory: affects its rank only. By reason.")
    ] = 0.7


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """The topical evidence, in the unit of the weights, at which a memory is as likely relevant as not.

    Fitted by logistic regression on questions with and without an answer among the memories
    (`bench/calibrate_recall.py`). Further features (the lead over the next memory, the share of words found, the
    features apart) did not help.
    """

    even: Annotated[
        _Weight,
        Meta(
            description="Evidence from which a user's only memory counts as relevant, in the unit of the weights. "
            "Where answers and questions without one weigh the same, 2.11 is fitted; lower, since a missing memory "
            "costs two and a half times one too many. More: fewer notes, and fewer wrong ones."
        ),
    ] = 1.3
    doubling: Annotated[
        _Weight,
        Meta(
            description="Added to it each time the number of the user's memories doubles, up to 16: the more there "
            "are, the likelier that one of them resembles any question; fitted."
        ),
    ] = 0.39
    slope: Annotated[
        Annotated[float, Meta(ge=0.01, le=20)],
        Meta(
            description="Log odds of relevance per unit of evidence; fitted. It affects the probability, not "
            "the decision."
        ),
    ] = 1.0
    personal: Annotated[
        _Weight,
        Meta(description='Added to the threshold if the question says "my" or "we": it is about the user.'),
    ] = -0.5
    task: Annotated[
        _Weight,
        Meta(description='Added to the threshold if it says "write" or "plan": preferences help there.'),
    ] = -1.2
    general: Annotated[
        _Weight,
        Meta(description='Added to the threshold if it says "what is the" or "why do": general knowledge.'),
    ] = 1.4
    courtesy: Annotated[
        _Weight,
        Meta(description="Added to the threshold if it is only thanks or a greeting: almost nothing is relevant."),
    ] = 5.0
    each: Annotated[
        _Weight,
        Meta(description="Evidence below which a memory is left out even if others are relevant."),
    ] = 0.8
    margin: Annotated[
        Annotated[float, Meta(ge=0, le=100)],
        Meta(description="Distance from the best memory beyond which one is left out; four units are odds of 1 to 50."),
    ] = 4.0
    near_each: Annotated[
        _Weight,
        Meta(description="Like `each`, for memories that only fill a short note, after those that pass."),
    ] = -1.0
    near_margin: Annotated[
        Annotated[float, Meta(ge=0, le=100)],
        Meta(description="Like `margin`, for memories that only fill a short note."),
    ] = 8.0
    near_tokens: Annotated[
        Annotated[int, Meta(ge=0, le=20_000)],
        Meta(description="Tokens up to which a note is filled with such memories; 0: not at all."),
    ] = 400
    several_each: Annotated[
        _Weight,
        Meta(
            description="`near_each` for a question that counts, compares, orders or lists: it needs several memories, "
            "and names what they have in common rather than their content."
        ),
    ] = -2.0
    several_margin: Annotated[
        Annotated[float, Meta(ge=0, le=100)],
        Meta(description="`near_margin` for such a question."),
    ] = 12.0
    several_tokens: Annotated[
        Annotated[int, Meta(ge=0, le=20_000)],
        Meta(description="`near_tokens` for such a question."),
    ] = 500


class HalfLives(msgspec.Struct, frozen=True, kw_only=True):
    """The number of days after which half of `weights.recency` is left, by memory type."""

    episodic_days: Annotated[
        _Days, Meta(description="Events; by reason: after two months they are asked for by topic.")
    ] = 60.0
    semantic_days: Annotated[
        _Days, Meta(description="Facts and preferences; by reason: valid for about a year or much longer.")
    ] = 365.0
    procedural_days: Annotated[_Days, Meta(description="Procedures; by reason: as long as facts.")] = 365.0
    reflective_days: Annotated[
        _Days, Meta(description="Derived from other memories; by reason: half of a fact's, since they are inferred.")
    ] = 180.0


class NeighbourWeights(msgspec.Struct, frozen=True, kw_only=True):
    """The weight of neighbouring turns in a memory's window, relative to 1 for the memory itself."""

    next: Annotated[
        _Neighbour,
        Meta(description="Of the turns right before and after it; by reason: an answer is read with its question."),
    ] = 1.0
    next_but_one: Annotated[
        _Neighbour, Meta(description="Of the turns one further; by reason: half, the topic may have changed.")
    ] = 0.5


class Unspaced(msgspec.Struct, frozen=True, kw_only=True):
    """Texts in scripts without spaces, whose words are not known."""

    character: Annotated[
        _Share,
        Meta(
            description="Weight of one shared character, against 1 for a pair of them; by reason: single "
            "characters are ambiguous."
        ),
    ] = 0.5


class RankingSettings(msgspec.Struct, frozen=True, kw_only=True):
    weights: Weights = Weights()
    bar: Bar = Bar()
    half_lives: HalfLives = HalfLives()
    neighbours: NeighbourWeights = NeighbourWeights()
    unspaced: Unspaced = Unspaced()
    rewritten: Annotated[
        _Neighbour,
        Meta(
            description="Weight of a rewritten question relative to 1 for the plain one; of 16 follow-ups the plain "
            "one found 7, the rewritten one 16 (15 first), both together 16 first."
        ),
    ] = 2.0
