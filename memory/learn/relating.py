"""Which claims are put to the reader beside which memories, and which ones only restate a memory.

A pair is worth asking about where both are about the same subject and near in meaning, or would be two values of an
attribute that has one: those first, then the nearest few of each claim. Nothing is decided of them here. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory.learn.consolidation import Pair
from memory.learn.feedback import is_restated
from memory.model import (
    NO_ATTRIBUTE,
    Claim,
    Memory,
    MemoryStatus,
    Role,
    Turn,
    Vector,
    is_single_valued,
    statement_key,
)
from memory.ports import StatementPair

PAIRS_OF_ONE_MAX = 4
PAIRS_MAX = 48  # of a window
RESTATED_WORDS_MIN = 2  # of a memory, by a question that asks for more: one is all that "what is your cat called?" has
NEAR_MIN = 0.45  # cosine
NEAR_ATTRIBUTE_MIN = 0.3  # the same, of one attribute: changes are told in other words than what they change


def pairs_to_ask(
    claims: Sequence[Claim], memories: Sequence[Memory], *, vectors: Mapping[str, Vector]
) -> dict[Pair, StatementPair]:
    """By the claim's index and the memory's id. `vectors`: by text; a text without one is not compared.

    The older one of a pair is what was said first, whichever of the two is the claim.
    """
    found: dict[Pair, StatementPair] = {}
    for index, claim in enumerate(claims):
        near = sorted(_near(claim, memories, vectors), key=lambda one: -one[0])[:PAIRS_OF_ONE_MAX]
        for _, memory in near:
            is_newer = claim.said_at >= memory.said_at
            pair = (memory.content, claim.text) if is_newer else (claim.text, memory.content)
            found[index, memory.id] = StatementPair(*pair)
            if len(found) == PAIRS_MAX:
                return found
    return found


def _near(claim: Claim, memories: Sequence[Memory], vectors: Mapping[str, Vector]) -> list[tuple[float, Memory]]:
    own = vectors.get(claim.text)
    found: list[tuple[float, Memory]] = []
    key = statement_key(claim.text)
    for memory in memories:
        other = vectors.get(memory.content)
        if own is None or other is None or memory.status is not MemoryStatus.ACTIVE:
            continue
        if memory.project_id != claim.scope.project_id or memory.subject != claim.relation.value:
            continue
        likeness = float(own @ other)
        is_of_one = claim.attribute != NO_ATTRIBUTE and claim.attribute == memory.attribute
        is_in_question = is_of_one and is_single_valued(claim.attribute)  # without a verdict, fields alone decide
        least = -1.0 if is_in_question else NEAR_ATTRIBUTE_MIN if is_of_one else NEAR_MIN
        if likeness >= least and statement_key(memory.content) != key:
            found.append((likeness + 2.0 * is_in_question, memory))
    return found


def news(claims: Sequence[Claim], memories: Sequence[Memory], turns: Sequence[Turn]) -> list[int]:
    """Indices of the claims without those that take up a question of the assistant which restates what is known.

    Known is what `memories` hold, and what the user said in the claims before it; else an assistant that repeats its
    note would have it stored again as an answer. `turns`: those that the claims quote.
    """
    known = [memory for memory in memories if memory.status is MemoryStatus.ACTIVE]
    kept: list[int] = []
    for index, claim in enumerate(claims):
        of_project = [one for one in known if one.project_id == claim.scope.project_id]
        line, asked = confirmed_line(claim, turns), _asked(claim)
        if line and any(is_restated(one, line) for one in of_project):
            continue
        if asked and any(is_restated(one, asked, words_min=RESTATED_WORDS_MIN) for one in of_project):
            continue
        kept.append(index)
        known.append(_as_memory(claim))
    return kept


def _asked(claim: Claim) -> str:
    """What the assistant asked, where a reply of the user takes it along; else ""."""
    return "" if claim.evidence.role == Role.ASSISTANT else claim.text.replace(claim.evidence.quote, "").strip()


def confirmed_line(claim: Claim, turns: Sequence[Turn]) -> str:
    """The line of the assistant's answer with the question that a bare "yes" confirmed; "" for any other claim."""
    if claim.evidence.role != Role.ASSISTANT or not claim.is_affirmed:
        return ""
    question = claim.evidence.quote
    answer = next((turn.answer for turn in turns if turn.id == claim.evidence.turn_id), "")
    return next((line for line in answer.splitlines() if question in line), question)


def _as_memory(claim: Claim) -> Memory:
    """What it says, as far as it is compared here."""
    at, scope = claim.said_at, claim.scope
    return Memory(
        id=claim.evidence.turn_id,
        user_id=scope.user_id,
        project_id=scope.project_id,
        content=claim.text,
        values=claim.values,
        created_at=at,
        updated_at=at,
        said_at=at,
    )


__all__ = ["confirmed_line", "news", "pairs_to_ask"]
