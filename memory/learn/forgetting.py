"""Requests to forget, or not to store, something: how far each reaches, and what goes and stays because of it.

`forget_targets` finds what a request means. What comes close is reported to the user and kept. A request concerns what
was said before it, never after, unless it is about whatever is said, or about its conversation. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from memory.language import asked_words, content_words
from memory.language.restating import has_code_of, says_all
from memory.learn.closeness import UNKNOWN, Closeness
from memory.learn.forget_targets import MEANT_MIN, SIMILAR_MIN, UNKNOWN_LIKENESS, Known, odds_of
from memory.learn.reading.units import own_messages
from memory.model import (
    Act,
    Claim,
    Memory,
    MemoryStatus,
    Relation,
    Trust,
    Turn,
    TurnStatus,
    is_single_valued,
    statement_key,
)
from memory.model.claims import ORDERS, STORED_ACTS
from memory.model.days import without_days
from memory.ports import OrderReach
from memory.service.carried_words import with_own_fields, without_carried_words
from memory.service.erasure import without_sources

FORGET_MEMORIES_MAX = 20_000  # examined for one request; more than anybody has
LATER_REQUESTS_MAX = 200  # applied to a window, mostly one that is learnt late; more than anybody makes
SIMILAR_MAX = 20  # listed in a receipt
OUTCOME_IDS_MAX = 100  # listed in a receipt; `count` has the total
ASKING_ACTS = frozenset({Act.REMEMBER, *ORDERS})  # acts that ask something of memory itself
NAMING = (OrderReach.TOPIC, OrderReach.WHOLE)
FROM_NOW = (OrderReach.CONVERSATION, OrderReach.STOP)  # also what is said after it
SURE_MIN = 0.7  # confidence at which a claim counts as certain


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A request and its position: the user's `message`-th message of the turn, from character `start`.

    `sentence`: of a request that means what was said right before it, the author's statement in the same turn, or "".
    """

    claim: Claim
    turn: Turn
    message: int
    start: int
    reach: OrderReach
    sentence: str = ""

    @property
    def topic(self) -> str:
        return self.claim.text if self.reach in NAMING else ""


def requests_of(
    orders: Sequence[Claim],
    turns: Sequence[Turn],
    reaches: Mapping[str, OrderReach] = MappingProxyType({}),
    said: Sequence[Claim] = (),
) -> list[ForgetRequest]:
    """The user's requests to forget or not to store something, in the order said. `reaches`: by the orders' texts.
    `said`: all claims of these turns.
    """
    by_id = {turn.id: turn for turn in turns}
    sure = [
        claim
        for claim in orders
        if claim.act in ORDERS and claim.confidence >= SURE_MIN and claim.evidence.turn_id in by_id
    ]
    taken_back = {_sentence_of(before) for before, claim in pairwise(sure) if _revokes(claim, before, reaches)}
    found = [
        request
        for claim in sure
        if _sentence_of(claim) not in taken_back
        for request in _requests(claim, by_id[claim.evidence.turn_id], reaches.get(claim.text, OrderReach.TOPIC))
    ]
    certain = [one for one in said if one.act in STORED_ACTS | ORDERS and one.confidence >= SURE_MIN]
    last = [_last_before(request, certain) for request in found]
    return [
        replace(request, sentence=one.evidence.quote if one else "")
        for request, one in zip(found, last, strict=True)
        if one is None or one.act not in ORDERS  # "It is nobody's business" behind an order says why
    ]


def _sentence_of(claim: Claim) -> tuple[str, str]:
    return claim.evidence.turn_id, claim.evidence.quote


def _revokes(claim: Claim, before: Claim, reaches: Mapping[str, OrderReach]) -> bool:
    """Whether it takes back the order before it in its turn, and all of that sentence: "no wait, keep it"."""
    return reaches.get(claim.text) is OrderReach.REVOKED and claim.evidence.turn_id == before.evidence.turn_id


def _last_before(request: ForgetRequest, said: Sequence[Claim]) -> Claim | None:
    """The last of these that stands before it in its turn, if it means what was said right before."""
    if request.reach is not OrderReach.PREVIOUS:
        return None
    before = [one for one in said if _is_before(request, one, {request.turn.id: 0})]
    return max(before, key=lambda one: _position(one, request.turn), default=None)


def _requests(claim: Claim, turn: Turn, reach: OrderReach) -> Iterator[ForgetRequest]:
    """One, or two of "Don't store my blood type", which says nothing to withhold: what is known of it goes as well."""
    if reach is OrderReach.EVERYTHING and (claim.name or claim.relation is not Relation.USER):
        reach = OrderReach.WHOLE  # it names somebody or something: "all you know of Tom"
    message, start = _position(claim, turn)
    said = list(own_messages(turn))[message : message + 1]
    words = claim.evidence.words if reach is OrderReach.PREVIOUS else claim.evidence.quote
    is_alone = bool(said) and said[0].strip() == words.strip()
    is_order = claim.act is Act.FORGET or (is_alone and reach is OrderReach.PREVIOUS)
    request = ForgetRequest(claim, turn, message, start, reach)
    if reach is OrderReach.STOP or not (is_order or reach in (OrderReach.CONVERSATION, OrderReach.REVOKED)):
        yield replace(request, reach=OrderReach.MESSAGE)
    if is_order or reach in FROM_NOW or (is_alone and reach in NAMING):
        yield request


def topics_of(requests: Iterable[ForgetRequest]) -> list[str]:
    """The texts that have to be embedded before `similar_ids` is called."""
    return list(dict.fromkeys(request.topic for request in requests if request.topic))


def withheld_claims(
    claims: Sequence[Claim],
    requests: Sequence[ForgetRequest],
    turns: Sequence[Turn],
    close: Closeness,
    later: Sequence[ForgetRequest] = (),
) -> frozenset[Claim]:
    """Those that a request withholds, or a `lasting` one made `later`. `turns`: of context and window, as they came."""
    place = {turn.id: index for index, turn in enumerate(turns)}
    taken = {claims[number] for number in forgotten_later(later, claims, close)}
    for request in requests:
        earlier = [claim for claim in claims if _is_before(request, claim, place)]
        means = _means(request, earlier, turns, close)
        taken |= {claim for claim, is_meant in zip(earlier, means, strict=True) if is_meant}
        if request.reach is OrderReach.MESSAGE:
            of_turn = (claim for claim in claims if claim.evidence.turn_id == request.turn.id)
            of_message = {claim for claim in of_turn if _position(claim, request.turn)[0] == request.message}
            taken |= {one for one in of_message if _is_before(request, one, place) or not one.is_explicit}
        elif request.reach in FROM_NOW:
            taken |= {claim for claim in claims if not (_is_before(request, claim, place) or claim.act is Act.REMEMBER)}
    return frozenset(taken)


def without_words_of(gone: Collection[Claim], kept: Iterable[Claim]) -> list[Claim]:
    """With their own words alone where they share a sentence with one that is gone, or took its words along."""
    return [_without_words_of(gone, claim) for claim in kept]


def _without_words_of(gone: Collection[Claim], claim: Claim) -> Claim:
    here = claim.evidence
    of_turn = [one for one in gone if one.evidence.turn_id == here.turn_id]
    words = [word for one in of_turn for word in (one.evidence.words, *one.values)]
    text = without_carried_words(claim.text, here, words)
    claim = claim if text == claim.text else replace(with_own_fields(claim, here), text=text)
    is_shared = any(one.evidence.quote == here.quote for one in of_turn)
    return replace(claim, evidence=here.alone) if is_shared else claim


def lasting(requests: Sequence[ForgetRequest]) -> list[ForgetRequest]:
    """The requests that also apply to other windows: to earlier statements that are learnt later, for example from a
    dead letter, and to what is said after them in their conversation; nothing but the latter if they were filled in.
    """
    from_now = [one for one in requests if one.reach in FROM_NOW]
    return from_now + [one for one in carried_out(requests) if one.reach in (*NAMING, OrderReach.EVERYTHING)]


def carried_out(requests: Sequence[ForgetRequest]) -> list[ForgetRequest]:
    """Without those of turns that were filled in: they withhold what was said before them in their conversation, and
    delete nothing. Nobody saw them being made, and when is not known.
    """
    return [request for request in requests if request.turn.status is not TurnStatus.FILLED_IN]


def forgotten_later(
    requests: Sequence[ForgetRequest], known: Sequence[Known], close: Closeness = UNKNOWN
) -> frozenset[int]:
    """The places of those that one of these `lasting` requests, made later, means beside the others."""
    found: set[int] = set()
    for request in requests:
        before = [place for place, one in enumerate(known) if _is_in_reach(request, one)]
        rows, is_whole = [known[place] for place in before], request.reach is OrderReach.WHOLE
        meant = odds_of(request.claim, rows, close, nearest=UNKNOWN_LIKENESS, is_whole=is_whole)
        is_all = not request.topic
        found |= {place for place, odds in zip(before, meant, strict=True) if is_all or odds >= MEANT_MIN}
    return frozenset(found)


def _is_in_reach(request: ForgetRequest, known: Known) -> bool:
    if request.reach in FROM_NOW:
        is_since = known.said_at > request.turn.at
        is_taken = not _is_explicit(known) if is_since else request.reach is OrderReach.CONVERSATION
        return is_taken and _is_of_conversation(request, known)
    project_id = known.project_id if isinstance(known, Memory) else known.scope.project_id
    return known.said_at <= request.turn.at and request.turn.scope.project_id in ("", project_id)


def says_topic(request: ForgetRequest) -> Callable[[str], bool]:
    """A test of texts that nobody has read: whether one has all words of the request's topic, or a code of it."""
    words = asked_words(request.topic)
    return lambda text: (bool(words) and says_all(words, content_words(text))) or has_code_of(request.topic, text)


def names_only_a_kind(request: ForgetRequest) -> bool:
    """Whether its topic is a plain attribute without a value ("where I live"): any words may say that."""
    asked = request.claim
    return bool(request.topic) and is_single_valued(asked.attribute) and not (asked.values or asked.name)


def matching_ids(
    request: ForgetRequest, memories: Iterable[Memory], turns: Sequence[Turn], close: Closeness = UNKNOWN
) -> list[str]:
    """Ids of the memories to delete. `memories`: all of the user's in the request's project, of any status.

    Only those said before the request match. `turns`: context and window, in the order said.
    """
    before = [memory for memory in memories if memory.said_at <= request.turn.at]
    means = _means(request, before, turns, close)
    found = dict.fromkeys(memory.id for memory, is_meant in zip(before, means, strict=True) if is_meant)
    for memory in sorted(before, key=lambda one: -one.said_at):  # and what they superseded
        if memory.superseded_by in found and memory.id not in found:
            found[memory.id] = None
    return list(found)[:FORGET_MEMORIES_MAX]


def similar_ids(request: ForgetRequest, memories: Iterable[Memory], close: Closeness) -> list[str]:
    """Ids of active memories that are kept although the user may have meant them; the user has to decide.

    Most similar first. `memories` as for `matching_ids`.
    """
    if not request.topic:
        return []
    before = [one for one in memories if one.said_at <= request.turn.at and one.status is MemoryStatus.ACTIVE]
    near = [
        (odds, memory.id)
        for odds, memory in zip(_odds(request, before, close), before, strict=True)
        if SIMILAR_MIN <= odds < MEANT_MIN
    ]
    return [memory_id for _, memory_id in sorted(near, reverse=True)[:SIMILAR_MAX]]


def turn_meant(request: ForgetRequest, turns: Sequence[Turn]) -> Turn | None:
    """The turn that a request means by "what I just said"; None if it means something else, or there is none."""
    if request.reach is not OrderReach.PREVIOUS or request.message > 0 or request.sentence:
        return None
    index = next((index for index, other in enumerate(turns) if other.id == request.turn.id), 0)
    return turns[index - 1] if index else None


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
        receipt_id: _outcome([(requests[index], found.get(index, ForgetMatches())) for index in indexes])
        for receipt_id, indexes in by_receipt.items()
    }


def _outcome(done: Sequence[tuple[ForgetRequest, ForgetMatches]]) -> dict[str, Any]:
    ids = list(dict.fromkeys(memory_id for _, found in done for memory_id in found.gone))
    stayed = list(dict.fromkeys(one for _, found in done for one in found.similar if one not in ids))
    # A sentence of now was never stored, and what follows neither.
    withholds = [one.sentence or one.reach in (OrderReach.MESSAGE, *FROM_NOW) for one, _ in done]
    acts = {Act.WITHHOLD if one else request.claim.act for one, (request, _) in zip(withholds, done, strict=True)}
    outcome: dict[str, Any] = {}
    if Act.FORGET in acts or ids:
        outcome |= {"forgot": ids[:OUTCOME_IDS_MAX], "count": len(ids)}
        if not ids:
            outcome["reason"] = "nothing_matched"
        if stayed:
            outcome["similar"] = stayed[:OUTCOME_IDS_MAX]
    if Act.WITHHOLD in acts:
        outcome["withheld"] = True
    return outcome


def _is_before(request: ForgetRequest, claim: Claim, place: Mapping[str, int]) -> bool:
    if request.turn.scope.project_id not in ("", claim.scope.project_id):
        return False
    here, there = place.get(request.turn.id), place.get(claim.evidence.turn_id)
    if here is None or there is None or there > here:
        return False
    return there < here or _position(claim, request.turn) < (request.message, request.start)


def _means(request: ForgetRequest, known: Sequence[Known], turns: Sequence[Turn], close: Closeness) -> Sequence[bool]:
    """For each of these statements, made before the request, whether it means it."""
    if request.topic:
        return [odds >= MEANT_MIN for odds in _odds(request, known, close)]
    if request.sentence:
        meant = request.turn.id, request.sentence
        return [
            (one.evidence.turn_id, one.evidence.quote) == meant
            if isinstance(one, Claim)
            else statement_key(without_days(one.content)) == statement_key(request.sentence)
            for one in known
        ]
    if request.reach is OrderReach.PREVIOUS:
        previous = turn_meant(request, turns)
        return [previous is not None and _rests_on(one, previous.id) for one in known]
    if request.reach is OrderReach.CONVERSATION:
        return [_is_of_conversation(request, one) for one in known]
    return [request.reach is OrderReach.EVERYTHING] * len(known)


def _odds(request: ForgetRequest, known: Sequence[Known], close: Closeness) -> list[float]:
    return odds_of(request.claim, known, close, is_whole=request.reach is OrderReach.WHOLE)


def _is_of_conversation(request: ForgetRequest, known: Known) -> bool:
    session_id = known.session_id if isinstance(known, Memory) else known.scope.session_id
    return session_id == request.turn.scope.session_id


def _is_explicit(known: Known) -> bool:
    return known.trust is Trust.EXPLICIT if isinstance(known, Memory) else known.act is Act.REMEMBER


def _rests_on(known: Known, turn_id: str) -> bool:
    if isinstance(known, Claim):
        return any(quoted.turn_id == turn_id for quoted in known.sources)
    is_on_it = any(quoted.turn_id == turn_id for quoted in known.evidence)
    return is_on_it and without_sources(known, [turn_id], now=known.updated_at) is None


def _position(claim: Claim, turn: Turn) -> tuple[int, int]:
    """The index of the message that contains the quote, and the position in it; the last message if none does."""
    messages = list(own_messages(turn))
    for index, content in enumerate(messages):
        start = content.find(claim.evidence.quote)
        if start >= 0:
            return index, start + max(0, claim.evidence.quote.find(claim.evidence.words))
    return len(messages), 0
