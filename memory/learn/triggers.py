"""A look at one finished turn: is it to be learnt at once, does it leave the topic, what would be lost without it?

Only where a chat model reads, whose calls are saved up; the trained reader says what kind of turn it is. It only says
when, and what goes first when there is too much. Never says that a turn is not to be learnt. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory.language import content_words
from memory.learn.forgetting import ASKING_ACTS, SURE_MIN
from memory.learn.reading.units import own_messages
from memory.model import STORED_ACTS, Act, Claim, Message, Role, Turn, Urgency

MESSAGES_MAX = 8  # looked at of one turn, the last ones
CHARACTERS_MAX = 4_000  # of a message, from its beginning; a longer one was pasted for the most part
TOPIC_CHARACTERS_MAX = 500  # what a short question's vector can be compared with
TOPIC_WORDS_MIN = 4  # of content; fewer say too little of a topic: "and how much is that?"

WORTH_NOTHING = 0.1  # the reader finds nothing; a model may find more
WORTH_STATEMENT = 0.5  # something that would be kept; the rest up to 1 is its importance


def examine(
    turn: Turn,
    claims: Sequence[Claim],
    *,
    has_earlier: bool = False,
    likeness: float | None = None,
    drift_similarity: float = 0.0,
) -> Urgency:
    """`claims`: of this turn, by the trained reader. `has_earlier`: turns of its session wait, too.

    `likeness`: the greatest cosine of its `topic_text` to one of theirs, None where there is nothing to compare; below
    `drift_similarity` the turn speaks of something else. 0 means that topics do not count.
    """
    sure = [claim for claim in claims if claim.confidence >= SURE_MIN and claim.evidence.turn_id == turn.id]
    has_left_topic = likeness is not None and drift_similarity > 0 and likeness < drift_similarity
    kept = [claim.importance for claim in sure if claim.act in STORED_ACTS]
    asks_memory = any(claim.act in ASKING_ACTS for claim in sure)
    return Urgency(
        worth=min(1.0, WORTH_STATEMENT + (1 - WORTH_STATEMENT) * max(kept)) if kept else WORTH_NOTHING,
        is_explicit=asks_memory or any(claim.act is Act.CORRECT for claim in sure),
        asks_memory=asks_memory,
        ends_topic=has_earlier and has_left_topic,
    )


def shortened(turn: Turn) -> Turn:
    """The turn with the user's own messages alone, cut to what is looked at."""
    own = [m for m in turn.messages if m.role == Role.USER and not m.is_tool_traffic]
    messages: tuple[Message, ...] = tuple(replace(m, content=m.content[:CHARACTERS_MAX]) for m in own[-MESSAGES_MAX:])
    return replace(turn, messages=messages)


def topic_text(turn: Turn) -> str:
    """What the turn is about, in the user's words; "" where they say too little to tell."""
    text = " ".join(own_messages(shortened(turn)))[:TOPIC_CHARACTERS_MAX]
    return text if len(content_words(text)) >= TOPIC_WORDS_MIN else ""
