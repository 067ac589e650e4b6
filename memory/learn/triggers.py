"""Examines one finished turn: whether it is urgent, whether it changes the topic, and its value for load shedding.

Used only with a chat model as the reader, whose calls are batched; the trained reader supplies the claims. The result
decides when a turn is learnt, and which turns are shed first, never that a turn is not learnt. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory.language import content_words
from memory.learn.forgetting import ASKING_ACTS, SURE_MIN
from memory.learn.reading.units import own_messages
from memory.model import STORED_ACTS, Act, Claim, Message, Role, Turn, Urgency

MESSAGES_MAX = 8  # of one turn, the last ones
CHARACTERS_MAX = 4_000  # of the beginning of a message; longer ones are mostly pasted text
TOPIC_CHARACTERS_MAX = 500  # similar in length to what a short question can be compared with
DRIFT_SIMILARITY = 0.1  # a cosine: unrelated questions have one of about 0 in every language
TOPIC_WORDS_MIN = 4  # content words; with fewer, the topic is unclear: "and how much is that?"

WORTH_NOTHING = 0.1  # the trained reader finds nothing; a model may find more
WORTH_STATEMENT = 0.5  # something that would be stored; up to 1 by its importance


def examine(turn: Turn, claims: Sequence[Claim], *, likeness: float | None = None) -> Urgency:
    """`claims`: of this turn, by the trained reader. `likeness`: the highest cosine of its `topic_text` to those of
    earlier turns of its session that wait as well, None if there is nothing to compare.
    """
    sure = [claim for claim in claims if claim.confidence >= SURE_MIN and claim.evidence.turn_id == turn.id]
    kept = [claim.importance for claim in sure if claim.act in STORED_ACTS]
    asks_memory = any(claim.act in ASKING_ACTS for claim in sure)
    return Urgency(
        worth=min(1.0, WORTH_STATEMENT + (1 - WORTH_STATEMENT) * max(kept)) if kept else WORTH_NOTHING,
        is_explicit=asks_memory or any(claim.act is Act.CORRECT for claim in sure),
        asks_memory=asks_memory,
        ends_topic=likeness is not None and likeness < DRIFT_SIMILARITY,
    )


def shortened(turn: Turn) -> Turn:
    """The turn with the user's own messages only, cut to the limits."""
    own = [m for m in turn.messages if m.role == Role.USER and not m.is_tool_traffic]
    messages: tuple[Message, ...] = tuple(replace(m, content=m.content[:CHARACTERS_MAX]) for m in own[-MESSAGES_MAX:])
    return replace(turn, messages=messages)


def topic_text(turn: Turn) -> str:
    """The user's words in the turn, for comparing topics; "" if there are too few."""
    text = " ".join(own_messages(shortened(turn)))[:TOPIC_CHARACTERS_MAX]
    return text if len(content_words(text)) >= TOPIC_WORDS_MIN else ""
