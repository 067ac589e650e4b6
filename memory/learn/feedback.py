"""What the user says about an answer: that it is right. Only memories that the answer restated get surer by it.

A bare "yes" adds no evidence and changes no word. What is wrong comes as a correcting claim, and consolidation lets
it take the place of what it puts right. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.language import content_words
from memory.model import Act, Claim, Memory, Scope, Turn, TurnStatus

RESTATED_SHARE_MIN = 0.6  # of a memory's words that a line of the answer has to hold
ANSWER_CHARACTERS_MAX = 8_000  # of an answer; what is behind them was hardly meant by a "yes"
RAISED_STEP = 0.3  # of what is missing to certainty
CONFIDENCE_SURE = 0.99  # nothing to be gained past it: a thousand times "yes" write nothing


@dataclass(frozen=True, slots=True)
class Confirmation:
    """`answer`: what the assistant had said, right before it was called right at `at` (Unix seconds)."""

    answer: str
    scope: Scope
    at: float


def confirmations_of(claims: Sequence[Claim], turns: Sequence[Turn]) -> list[Confirmation]:
    """`turns`: context and window in the order said, those that broke off among them: a "yes" behind one confirms
    nothing.
    """
    place = {turn.id: index for index, turn in enumerate(turns)}
    found: list[Confirmation] = []
    for claim in claims:
        index = place.get(claim.evidence.turn_id, 0)
        if claim.act is Act.CONFIRM and index > 0 and not is_broken(turns[index - 1]):
            found.append(Confirmation(turns[index - 1].answer[:ANSWER_CHARACTERS_MAX], claim.scope, claim.said_at))
    return found


def is_broken(turn: Turn) -> bool:
    """Whether its reply never reached its end: what was said there teaches nothing."""
    return turn.status in (TurnStatus.FAILED, TurnStatus.ABORTED)


def is_restated(memory: Memory, answer: str, *, words_min: int = 1) -> bool:
    """Whether a line of the answer says what the memory says, all its values among it, and `words_min` words of it."""
    known = content_words(memory.content)
    lines = [line for line in answer.splitlines() if line.strip()]
    return any(_says(line, known, memory) for line in lines) if len(known) >= words_min else False


def _says(line: str, known: frozenset[str], memory: Memory) -> bool:
    shared = known & content_words(line)
    has_values = all(value.casefold() in line.casefold() for value in memory.values)
    return has_values and len(shared) >= min(2, len(known)) and len(shared) >= RESTATED_SHARE_MIN * len(known)


def raised(memory: Memory, *, now: float) -> Memory | None:
    """None where it is as sure as can be."""
    if memory.confidence >= CONFIDENCE_SURE:
        return None
    return replace(memory, confidence=memory.confidence + (1.0 - memory.confidence) * RAISED_STEP, updated_at=now)
