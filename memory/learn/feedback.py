"""What a turn says about the one before it: confirmations of its answer, and the gaps that failed turns leave.

When the user says that an answer is right, the memories that it restated gain confidence: a bare "yes" adds no evidence
and changes no text. Errors are reported as correcting claims, which consolidation lets supersede what they correct.
Failed and aborted turns are inserted among the turns that are learnt, so that a reader knows about the gaps: nothing is
learnt from them, and a "yes" after one confirms nothing that was asked before it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.language import content_words
from memory.model import Act, Claim, Memory, Scope, Turn, TurnStatus
from memory.model.claims import Values

RESTATED_SHARE_MIN = 0.6  # share of a memory's words that a line of the answer has to contain
ANSWER_CHARACTERS_MAX = 8_000  # of an answer; a "yes" rarely refers to what is beyond
RAISED_STEP = 0.3  # share of the missing confidence
CONFIDENCE_SURE = 0.99  # no increase beyond it: otherwise every "yes" would cause a write


@dataclass(frozen=True, slots=True)
class Confirmation:
    """`answer`: the assistant's message right before the user called it right, or corrected it, at `at`, in Unix
    seconds.
    """

    answer: str
    scope: Scope
    at: float
    is_right: bool = True


def confirmations_of(claims: Sequence[Claim], turns: Sequence[Turn]) -> list[Confirmation]:
    """Also of answers that a fragment corrects ("No, Tuesday").

    `turns`: context and window in the order said, also failed ones: a "yes" after such a turn confirms nothing.
    """
    place = {turn.id: index for index, turn in enumerate(turns)}
    found: list[Confirmation] = []
    for claim in claims:
        index = place.get(claim.evidence.turn_id, 0)
        is_right = claim.act is Act.CONFIRM
        if (is_right or corrects_something(claim)) and index > 0 and not is_broken(turns[index - 1]):
            answer = turns[index - 1].answer[:ANSWER_CHARACTERS_MAX]
            found.append(Confirmation(answer, claim.scope, claim.said_at, is_right))
    return found


def corrects_something(claim: Claim) -> bool:
    """Whether it says nothing but what is different from something said before: "No, Tuesday"."""
    return claim.leans and claim.act is Act.CORRECT


def is_broken(turn: Turn) -> bool:
    """Whether its reply is incomplete; nothing is learnt from such a turn."""
    return turn.status in (TurnStatus.FAILED, TurnStatus.ABORTED)


def is_restated(text: str, values: Values, answer: str, *, words_min: int = 1) -> bool:
    """Whether a line of the answer restates the statement: all its values, and at least `words_min` of its words."""
    known = content_words(text)
    lines = [line for line in answer.splitlines() if line.strip()]
    return any(_says(line, known, values) for line in lines) if len(known) >= words_min else False


def _says(line: str, known: frozenset[str], values: Values) -> bool:
    shared = known & content_words(line)
    has_values = all(value.casefold() in line.casefold() for value in values)
    return has_values and len(shared) >= min(2, len(known)) and len(shared) >= RESTATED_SHARE_MIN * len(known)


def raised(memory: Memory, *, now: float) -> Memory | None:
    """The memory with higher confidence; None if it is already certain."""
    if memory.confidence >= CONFIDENCE_SURE:
        return None
    return replace(memory, confidence=memory.confidence + (1.0 - memory.confidence) * RAISED_STEP, updated_at=now)


def with_failed_turns(
    context: Sequence[Turn], turns: Sequence[Turn], breaks: Sequence[Turn]
) -> tuple[list[Turn], list[Turn]]:
    """Context and window with the failed turns at their positions in time: a "yes" refers to what stood right before.

    Failed turns before the whole context are left out.
    """
    oldest, first = min(turn.at for turn in (*context, *turns)), min(turn.at for turn in turns)
    before = [turn for turn in breaks if oldest <= turn.at < first]
    during = [turn for turn in breaks if turn.at >= first]
    return (
        sorted([*context, *before], key=lambda turn: turn.at) if before else list(context),
        sorted([*turns, *during], key=lambda turn: turn.at) if during else list(turns),
    )


def muted(turn: Turn) -> Turn:
    """A failed turn without its content: nothing is learnt from it, and its requests have no effect."""
    return replace(turn, messages=(), answer="") if is_broken(turn) else turn
