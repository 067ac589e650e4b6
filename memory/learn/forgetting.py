"""What the user asks to be forgotten or kept out of memory, and which memories and claims that means.

Deleting cannot be undone, so it stays closed: a request of which the reader is sure, and of the memories only those
that say what it names: its words, or the very attribute of the very person. Where nothing does, nothing goes. A request
reaches back, never forward: what is said after it is learnt as ever. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memory.erasure import without_source
from memory.language import (
    asked_words,
    attributes_named,
    content_words,
    is_limited,
    language_of,
    names_everything,
    names_previous,
    relation_named,
)
from memory.learn.reading.units import own_messages
from memory.model import Act, Claim, Memory, Relation, Turn

FORGET_MEMORIES_MAX = 20_000  # of one request; more than anybody has
LATER_REQUESTS_MAX = 200  # that a window heeds which was learnt late; more than anybody gives
OUTCOME_IDS_MAX = 100  # named in a receipt; `count` has them all
ASKING_ACTS = frozenset({Act.REMEMBER, Act.FORGET, Act.WITHHOLD})  # that ask something of memory itself
SURE_MIN = 0.7  # confidence of a claim at its reader's bar
LIKENESS_MIN = 0.55  # cosine that has to speak for it where half of the words do
SHARE_MIN = 0.5
PAIRS_SHARE_MIN = 0.6  # of a Chinese topic's pairs of characters: four characters make three pairs, and one may differ


class Reach(StrEnum):
    """How much a request is about."""

    TOPIC = "topic"  # what its words name
    PREVIOUS = "previous"  # what was said right before
    MESSAGE = "message"  # the message that it stands in
    EVERYTHING = "everything"  # all that is known about the user
    NOTHING = "nothing"  # it names nothing, or only for a while, or with an exception


@dataclass(frozen=True, slots=True)
class Request:
    """One request, and where it stands: the `message`-th message of the user in its turn, from character `start`."""

    claim: Claim
    turn: Turn
    message: int
    start: int
    reach: Reach

    @property
    def topic(self) -> str:
        return self.claim.text if self.reach is Reach.TOPIC else ""


@dataclass(frozen=True, slots=True)
class Spared:
    """Claims that may be learnt, and those that a request takes away."""

    kept: tuple[Claim, ...]
    withheld: tuple[Claim, ...]


def requests_of(claims: Sequence[Claim], turns: Sequence[Turn]) -> list[Request]:
    """What the user asked to be forgotten or kept out, in the order said."""
    by_id = {turn.id: turn for turn in turns}
    return [
        _request(claim, by_id[claim.evidence.turn_id])
        for claim in claims
        if claim.act in (Act.FORGET, Act.WITHHOLD) and claim.confidence >= SURE_MIN and claim.evidence.turn_id in by_id
    ]


def _request(claim: Claim, turn: Turn) -> Request:
    message, start = _position(claim, turn)
    return Request(claim, turn, message, start, _reach(claim, turn, message))


def _reach(claim: Claim, turn: Turn, message: int) -> Reach:
    if claim.act is Act.WITHHOLD:
        said = list(own_messages(turn))[message : message + 1]
        is_alone = bool(said) and said[0].strip() == claim.evidence.quote.strip()
        return Reach.PREVIOUS if is_alone and names_previous(claim.text) else Reach.MESSAGE
    if is_limited(claim.text):
        return Reach.NOTHING
    if asked_words(claim.text) or attributes_named(claim.text) or relation_named(claim.text) is not None:
        return Reach.TOPIC
    if names_everything(claim.text):
        return Reach.EVERYTHING
    return Reach.PREVIOUS if names_previous(claim.text) else Reach.NOTHING


def topics_of(requests: Iterable[Request]) -> list[str]:
    """What has to be embedded before `meant` can be asked."""
    return list(dict.fromkeys(request.topic for request in requests if request.topic))


def spare(claims: Sequence[Claim], requests: Sequence[Request], turns: Sequence[Turn]) -> Spared:
    """`turns`: context and window, in the order said."""
    place = {turn.id: index for index, turn in enumerate(turns)}
    kept: list[Claim] = []
    withheld: list[Claim] = []
    for claim in claims:
        is_taken = any(_takes(request, claim, turns, place) for request in requests)
        (withheld if is_taken else kept).append(claim)
    return Spared(tuple(kept), tuple(withheld))


def lasting(requests: Sequence[Request]) -> list[Request]:
    """Those that also mean what is said before them and learnt after them, out of a dead letter, say."""
    return [request for request in requests if request.reach in (Reach.TOPIC, Reach.EVERYTHING)]


def is_overtaken(requests: Sequence[Request], known: Claim | Memory) -> bool:
    """Whether one of these later, `lasting` requests means what is only being learnt now."""
    project_id = known.project_id if isinstance(known, Memory) else known.scope.project_id
    return any(
        known.said_at <= request.turn.at
        and request.turn.scope.project_id in ("", project_id)
        and (request.reach is Reach.EVERYTHING or names(request.claim, known))
        for request in requests
    )


Likeness = Callable[[Memory], float]
"""Cosine of a memory to the words of the request at hand, -1..1."""


def meant(request: Request, memories: Iterable[Memory], turns: Sequence[Turn], likeness: Likeness) -> list[str]:
    """Ids of the memories that go. `memories`: all that the user has where the request was made, whatever status.

    Only those that were said before the request. `turns`: context and window, in the order said.
    """
    before = [memory for memory in memories if memory.said_at <= request.turn.at]
    match request.reach:
        case Reach.EVERYTHING:
            found = before
        case Reach.TOPIC:
            found = [memory for memory in before if names(request.claim, memory, likeness=likeness(memory))]
        case Reach.PREVIOUS:
            previous = turn_meant(request, turns)
            found = [m for m in before if previous and _stands_on_alone(m, previous.id)]
        case _:
            found = []  # the message itself: nothing of it is stored yet
    return [memory.id for memory in found[:FORGET_MEMORIES_MAX]]


def turn_meant(request: Request, turns: Sequence[Turn]) -> Turn | None:
    """The turn that a request means by "what I just said"; None where it means something else, or nothing is known."""
    is_of_previous = request.reach is Reach.PREVIOUS and request.message == 0
    return _turn_before(request.turn, turns) if is_of_previous else None


def outcomes_of(requests: Sequence[Request], forgotten: Mapping[int, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """By receipt id, the confirmation. `forgotten`: by index in `requests`, ids only."""
    by_receipt: dict[str, list[int]] = {}
    for index, request in enumerate(requests):
        if request.turn.receipt_id:
            by_receipt.setdefault(request.turn.receipt_id, []).append(index)
    return {
        receipt_id: _outcome([(requests[index].claim.act, forgotten.get(index, ())) for index in indexes])
        for receipt_id, indexes in by_receipt.items()
    }


def _outcome(done: Sequence[tuple[Act, Sequence[str]]]) -> dict[str, Any]:
    ids = list(dict.fromkeys(memory_id for _, found in done for memory_id in found))
    outcome: dict[str, Any] = {}
    if any(act is Act.FORGET for act, _ in done) or ids:
        outcome |= {"forgot": ids[:OUTCOME_IDS_MAX], "count": len(ids)}
        if not ids:
            outcome["reason"] = "nothing_matched"
    if any(act is Act.WITHHOLD for act, _ in done):
        outcome["withheld"] = True
    return outcome


def _takes(request: Request, claim: Claim, turns: Sequence[Turn], place: Mapping[str, int]) -> bool:
    if request.turn.scope.project_id not in ("", claim.scope.project_id):
        return False
    here, there = place.get(request.turn.id), place.get(claim.evidence.turn_id)
    if here is None or there is None or there > here:
        return False
    if there == here:
        message, start = _position(claim, request.turn)
        if request.reach is Reach.MESSAGE and message == request.message:
            return True
        if (message, start) >= (request.message, request.start):
            return False
    return _reaches(request, claim, turns)


def _reaches(request: Request, claim: Claim, turns: Sequence[Turn]) -> bool:
    """Whether it means a claim that was made before it."""
    match request.reach:
        case Reach.EVERYTHING:
            return True
        case Reach.TOPIC:
            return names(request.claim, claim)
        case Reach.PREVIOUS:
            previous = turn_meant(request, turns)
            return previous is not None and claim.evidence.turn_id == previous.id
        case _:
            return False


def _position(claim: Claim, turn: Turn) -> tuple[int, int]:
    """Which message of the turn holds the quote, and where; the last message where none does."""
    messages = list(own_messages(turn))
    for index, content in enumerate(messages):
        start = content.find(claim.evidence.quote)
        if start >= 0:
            return index, start
    return len(messages), 0


def _turn_before(turn: Turn, turns: Sequence[Turn]) -> Turn | None:
    index = next((index for index, other in enumerate(turns) if other.id == turn.id), 0)
    return turns[index - 1] if index else None


def _stands_on_alone(memory: Memory, turn_id: str) -> bool:
    is_on_it = any(quoted.turn_id == turn_id for quoted in memory.evidence)
    return is_on_it and without_source(memory, turn_id, now=memory.updated_at) is None


def names(request: Claim, known: Claim | Memory, *, likeness: float = 0.0) -> bool:
    """Whether `known` says all that the request names, of the person that the request names."""
    content = known.content if isinstance(known, Memory) else known.text
    subject = known.subject if isinstance(known, Memory) else known.relation.value
    if not _is_of_person(request, subject, content):
        return False
    words, attributes = asked_words(request.text), attributes_named(request.text)
    if attributes and known.attribute not in attributes:
        return False  # the attribute is what the request is about
    if not words:
        return bool(attributes) or relation_named(request.text) is not None
    shared = len(words & content_words(content)) / len(words)
    enough = PAIRS_SHARE_MIN if language_of(request.text) == "zh" else 1.0
    return shared >= enough or (shared >= SHARE_MIN and likeness >= LIKENESS_MIN)


def _is_of_person(request: Claim, subject: str, content: str) -> bool:
    """ "My job" does not mean the sister's job; a name has to stand in what goes."""
    if request.name and request.name.casefold() not in content.casefold():
        return False
    named = relation_named(request.text)
    if named is None:
        return bool(request.name) or subject in ("", Relation.USER.value)
    return subject == named.value or relation_named(content) is named


__all__ = [
    "LATER_REQUESTS_MAX",
    "Reach",
    "Request",
    "Spared",
    "is_overtaken",
    "lasting",
    "meant",
    "names",
    "outcomes_of",
    "requests_of",
    "spare",
    "topics_of",
    "turn_meant",
]
