"""Requests to forget, or not to store, something: which memories and claims each of them means.

Deleting cannot be undone, so the rules are strict: the reader has to be sure of the request, and a memory has to match
it completely, by all its words or by the same attribute of the same person. Otherwise nothing is deleted; memories that
are merely similar are reported to the user and kept. A request concerns what was said before it, never after. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from memory.language import (
    asked_words,
    attributes_named,
    content_words,
    is_limited,
    names_everything,
    names_previous,
    names_same_person,
    relation_named,
)
from memory.language.restating import has_code_of, says_all
from memory.language.word_boundaries import whole_word_positions
from memory.learn.reading.units import own_messages
from memory.model import Act, Claim, Memory, MemoryStatus, Relation, Turn, TurnStatus
from memory.service.erasure import without_source

FORGET_MEMORIES_MAX = 20_000  # examined for one request; more than anybody has
LATER_REQUESTS_MAX = 200  # applied to a window that is learnt late; more than anybody makes
SIMILAR_MAX = 20  # listed in a receipt
OUTCOME_IDS_MAX = 100  # listed in a receipt; `count` has the total
ASKING_ACTS = frozenset({Act.REMEMBER, Act.FORGET, Act.WITHHOLD})  # acts that ask something of memory itself
SURE_MIN = 0.7  # confidence at which a claim counts as certain
SIMILAR_LIKENESS_MIN = 0.55  # cosine at which a memory is reported as similar; never a reason to delete
SIMILAR_SHARE_MIN = 0.5  # share of the words of a request


class ForgetReach(StrEnum):
    """The extent of a request."""

    TOPIC = "topic"  # what its words name
    PREVIOUS = "previous"  # what was said right before
    MESSAGE = "message"  # the message that contains the request
    EVERYTHING = "everything"  # everything known about the user
    NOTHING = "nothing"  # nothing named, or only temporarily, or with an exception


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A request and its position: the user's `message`-th message of the turn, from character `start`."""

    claim: Claim
    turn: Turn
    message: int
    start: int
    reach: ForgetReach

    @property
    def topic(self) -> str:
        return self.claim.text if self.reach is ForgetReach.TOPIC else ""


@dataclass(frozen=True, slots=True)
class SplitClaims:
    """Claims that may be learnt, and those that a request withholds."""

    kept: tuple[Claim, ...]
    withheld: tuple[Claim, ...]


def requests_of(claims: Sequence[Claim], turns: Sequence[Turn]) -> list[ForgetRequest]:
    """The user's requests to forget or not to store something, in the order said."""
    by_id = {turn.id: turn for turn in turns}
    return [
        _request(claim, by_id[claim.evidence.turn_id])
        for claim in claims
        if claim.act in (Act.FORGET, Act.WITHHOLD) and claim.confidence >= SURE_MIN and claim.evidence.turn_id in by_id
    ]


def _request(claim: Claim, turn: Turn) -> ForgetRequest:
    message, start = _position(claim, turn)
    return ForgetRequest(claim, turn, message, start, _reach(claim, turn, message))


def _reach(claim: Claim, turn: Turn, message: int) -> ForgetReach:
    if claim.act is Act.WITHHOLD:
        said = list(own_messages(turn))[message : message + 1]
        is_alone = bool(said) and said[0].strip() == claim.evidence.words.strip()
        return ForgetReach.PREVIOUS if is_alone and names_previous(claim.text) else ForgetReach.MESSAGE
    if is_limited(claim.text):
        return ForgetReach.NOTHING
    if asked_words(claim.text) or attributes_named(claim.text) or relation_named(claim.text) is not None:
        return ForgetReach.TOPIC
    if names_everything(claim.text):
        return ForgetReach.EVERYTHING
    return ForgetReach.PREVIOUS if names_previous(claim.text) else ForgetReach.NOTHING


def topics_of(requests: Iterable[ForgetRequest]) -> list[str]:
    """The texts that have to be embedded before `similar_ids` is called."""
    return list(dict.fromkeys(request.topic for request in requests if request.topic))


def split_claims(claims: Sequence[Claim], requests: Sequence[ForgetRequest], turns: Sequence[Turn]) -> SplitClaims:
    """`turns`: context and window, in the order said."""
    place = {turn.id: index for index, turn in enumerate(turns)}
    kept: list[Claim] = []
    withheld: list[Claim] = []
    for claim in claims:
        is_taken = any(_takes(request, claim, turns, place) for request in requests)
        (withheld if is_taken else kept).append(claim)
    return SplitClaims(tuple(kept), tuple(withheld))


def without_words_of(gone: Collection[Claim], kept: Iterable[Claim]) -> list[Claim]:
    """The kept claims, with their own words alone as evidence where they share a sentence with one that is gone."""
    shared = {(one.evidence.turn_id, one.evidence.quote) for one in gone}
    return [
        replace(one, evidence=one.evidence.alone) if (one.evidence.turn_id, one.evidence.quote) in shared else one
        for one in kept
    ]


def is_withheld(requests: Sequence[ForgetRequest], row: Memory, turns: Sequence[Turn]) -> bool:
    """Whether a request means this row with raw words, or was made in its turn. `turns` as for `split_claims`."""
    place = {turn.id: index for index, turn in enumerate(turns)}
    return any(_takes(request, row, turns, place) for request in requests)


def lasting(requests: Sequence[ForgetRequest]) -> list[ForgetRequest]:
    """The requests that also apply to earlier statements that are learnt later, for example from a dead letter."""
    return [request for request in requests if request.reach in (ForgetReach.TOPIC, ForgetReach.EVERYTHING)]


def carried_out(requests: Sequence[ForgetRequest]) -> list[ForgetRequest]:
    """Without those of turns that were filled in: they withhold what was said before them in their conversation, and
    delete nothing. Nobody saw them being made, and when is not known.
    """
    return [request for request in requests if request.turn.status is not TurnStatus.FILLED_IN]


def is_forgotten_later(requests: Sequence[ForgetRequest], known: Claim | Memory) -> bool:
    """Whether one of these `lasting` requests, made later, means what is being learnt now."""
    return any(
        known.said_at <= request.turn.at
        and request.turn.scope.project_id in ("", _project_of(known))
        and (request.reach is ForgetReach.EVERYTHING or names(request.claim, known))
        for request in requests
    )


def says_topic(request: ForgetRequest) -> Callable[[str], bool]:
    """A test of texts that nobody has read: whether one has all words of the request's topic, or a code of it."""
    words = asked_words(request.topic)
    return lambda text: (bool(words) and says_all(words, content_words(text))) or has_code_of(request.topic, text)


def names_only_a_kind(request: ForgetRequest) -> bool:
    """Whether its topic has no words of its own ("where I live"): what nobody has read may say that in any words."""
    return bool(request.topic) and not asked_words(request.topic)


Likeness = Callable[[Memory], float]
"""Cosine of a memory to the words of the current request, -1..1."""


def matching_ids(request: ForgetRequest, memories: Iterable[Memory], turns: Sequence[Turn]) -> list[str]:
    """Ids of the memories to delete. `memories`: all of the user's in the request's project, of any status.

    Only those said before the request match. `turns`: context and window, in the order said.
    """
    before = [memory for memory in memories if memory.said_at <= request.turn.at]
    match request.reach:
        case ForgetReach.EVERYTHING:
            found = before
        case ForgetReach.TOPIC:
            found = [memory for memory in before if names(request.claim, memory)]
        case ForgetReach.PREVIOUS:
            previous = turn_meant(request, turns)
            found = [m for m in before if previous and _stands_on_alone(m, previous.id)]
        case _:
            found = []  # the message itself: nothing of it is stored yet
    return [memory.id for memory in found[:FORGET_MEMORIES_MAX]]


def similar_ids(request: ForgetRequest, memories: Iterable[Memory], likeness: Likeness) -> list[str]:
    """Ids of active memories that are kept although the user may have meant them; the user has to decide.

    Most similar first. `memories` as for `matching_ids`.
    """
    if request.reach is not ForgetReach.TOPIC:
        return []
    found = [
        (likeness(memory), memory.id)
        for memory in memories
        if memory.said_at <= request.turn.at and memory.status is MemoryStatus.ACTIVE
        if _is_similar(request.claim, memory, likeness(memory)) and not names(request.claim, memory)
    ]
    return [memory_id for _, memory_id in sorted(found, reverse=True)[:SIMILAR_MAX]]


def turn_meant(request: ForgetRequest, turns: Sequence[Turn]) -> Turn | None:
    """The turn that a request means by "what I just said"; None if it means something else, or there is none."""
    is_of_previous = request.reach is ForgetReach.PREVIOUS and request.message == 0
    return _turn_before(request.turn, turns) if is_of_previous else None


@dataclass(frozen=True, slots=True)
class ForgetMatches:
    """For one request: ids of the memories to delete, and of `similar` ones that are kept.

    `raw`: of rows with raw words to delete, which the user is not told about.
    """

    gone: Sequence[str] = ()
    similar: Sequence[str] = ()
    raw: Sequence[str] = ()


def outcomes_of(requests: Sequence[ForgetRequest], found: Mapping[int, ForgetMatches]) -> dict[str, dict[str, Any]]:
    """The outcome of the requests by receipt id. `found`: by index in `requests`."""
    by_receipt: dict[str, list[int]] = {}
    for index, request in enumerate(requests):
        if request.turn.receipt_id:
            by_receipt.setdefault(request.turn.receipt_id, []).append(index)
    return {
        receipt_id: _outcome([(requests[index].claim.act, found.get(index, ForgetMatches())) for index in indexes])
        for receipt_id, indexes in by_receipt.items()
    }


def _outcome(done: Sequence[tuple[Act, ForgetMatches]]) -> dict[str, Any]:
    ids = list(dict.fromkeys(memory_id for _, found in done for memory_id in found.gone))
    stayed = list(dict.fromkeys(one for _, found in done for one in found.similar if one not in ids))
    outcome: dict[str, Any] = {}
    if any(act is Act.FORGET for act, _ in done) or ids:
        outcome |= {"forgot": ids[:OUTCOME_IDS_MAX], "count": len(ids)}
        if not ids:
            outcome["reason"] = "nothing_matched"
        if stayed:
            outcome["similar"] = stayed[:OUTCOME_IDS_MAX]
    if any(act is Act.WITHHOLD for act, _ in done):
        outcome["withheld"] = True
    return outcome


def _takes(request: ForgetRequest, known: Claim | Memory, turns: Sequence[Turn], place: Mapping[str, int]) -> bool:
    if request.turn.scope.project_id not in ("", _project_of(known)):
        return False
    here, there = place.get(request.turn.id), place.get(_turn_of(known))
    if here is None or there is None or there > here:
        return False
    if there == here:
        if isinstance(known, Memory):
            return True
        message, start = _position(known, request.turn)
        if request.reach is ForgetReach.MESSAGE and message == request.message:
            return True
        if (message, start) >= (request.message, request.start):
            return False
    return _reaches(request, known, turns)


def _reaches(request: ForgetRequest, known: Claim | Memory, turns: Sequence[Turn]) -> bool:
    """Whether the request matches what was said before it."""
    match request.reach:
        case ForgetReach.EVERYTHING:
            return True
        case ForgetReach.TOPIC:
            return names(request.claim, known)
        case ForgetReach.PREVIOUS:
            previous = turn_meant(request, turns)
            return previous is not None and _turn_of(known) == previous.id
        case _:
            return False


def _position(claim: Claim, turn: Turn) -> tuple[int, int]:
    """The index of the message that contains the quote, and the position in it; the last message if none does."""
    messages = list(own_messages(turn))
    for index, content in enumerate(messages):
        start = content.find(claim.evidence.quote)
        if start >= 0:
            return index, start + max(0, claim.evidence.quote.find(claim.evidence.words))
    return len(messages), 0


def _turn_before(turn: Turn, turns: Sequence[Turn]) -> Turn | None:
    index = next((index for index, other in enumerate(turns) if other.id == turn.id), 0)
    return turns[index - 1] if index else None


def _stands_on_alone(memory: Memory, turn_id: str) -> bool:
    is_on_it = any(quoted.turn_id == turn_id for quoted in memory.evidence)
    return is_on_it and without_source(memory, turn_id, now=memory.updated_at) is None


def names(request: Claim, known: Claim | Memory) -> bool:
    """Whether `known` contains everything that the request names, about the person that the request names."""
    content, subject = _said_of(known)
    if isinstance(known, Memory) and known.status is MemoryStatus.RAW:  # nobody read whom or what it is about
        words = asked_words(request.text)
        return bool(words) and says_all(words, content_words(content))
    if not (_is_of_person(request, subject, known.name, content) and _is_of_attribute(request, known)):
        return False
    words = asked_words(request.text)
    if not words:
        return bool(attributes_named(request.text)) or relation_named(request.text) is not None
    return says_all(words, content_words(content))


def _is_similar(request: Claim, memory: Memory, likeness: float) -> bool:
    """Whether the request may refer to it: half of the words match, or it is about a person of the same kind."""
    words = asked_words(request.text)
    if not words:
        named = relation_named(request.text)
        is_of_kind = named is not None and memory.subject == named.value
        return is_of_kind and (_is_of_attribute(request, memory) or names_same_person(request.text, memory.content))
    share = len(words & content_words(memory.content)) / len(words)
    return share >= SIMILAR_SHARE_MIN and likeness >= SIMILAR_LIKENESS_MIN


def _said_of(known: Claim | Memory) -> tuple[str, str]:
    """Its text, and whom it is about."""
    return (known.content, known.subject) if isinstance(known, Memory) else (known.text, known.relation.value)


def _project_of(known: Claim | Memory) -> str:
    return known.project_id if isinstance(known, Memory) else known.scope.project_id


def _turn_of(known: Claim | Memory) -> str:
    """The turn that it is from; of a memory, the first one."""
    return known.evidence[0].turn_id if isinstance(known, Memory) else known.evidence.turn_id


def _is_of_attribute(request: Claim, known: Claim | Memory) -> bool:
    named = relation_named(request.text)
    # "my pets" refers to a subject.
    attributes = attributes_named(request.text) - {named.value if named is not None else ""}
    return not attributes or known.attribute in attributes


def _is_of_person(request: Claim, subject: str, name: str, content: str) -> bool:
    """ "My job" does not mean the sister's job, nor "my dog" the cat; a given name has to occur in the memory."""
    is_named = bool(request.name) or bool(whole_word_positions(name.casefold(), request.text.casefold()))
    if request.name and not whole_word_positions(request.name.casefold(), content.casefold()):
        return False
    named = relation_named(request.text)
    if named is None:
        return is_named or subject in ("", Relation.USER.value)
    is_of_kind = named is Relation.OTHER or subject == named.value or relation_named(content) is named
    return is_of_kind and (is_named or names_same_person(request.text, content))


__all__ = [
    "LATER_REQUESTS_MAX",
    "ForgetMatches",
    "ForgetReach",
    "ForgetRequest",
    "SplitClaims",
    "carried_out",
    "is_forgotten_later",
    "is_withheld",
    "lasting",
    "matching_ids",
    "names",
    "outcomes_of",
    "requests_of",
    "similar_ids",
    "split_claims",
    "topics_of",
    "turn_meant",
    "without_words_of",
]
