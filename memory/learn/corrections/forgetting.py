"""What the user's own words ask to be forgotten or kept out of memory, and which memories and facts that means.

Deleting cannot be undone, so a memory is meant only if it says what the request names: every word of the topic, or an
attribute that both speak of ("my address", "I live in …"), or most of it and a likeness in meaning besides. Where
nothing does, nothing goes. A request reaches back, never forward: what is said after it is learnt as ever. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory.erasure import without_source
from memory.learn.corrections.whose import opens_with_user, owners_of
from memory.learn.facts import Fact
from memory.learn.statements.intent_words import SPARED_APART
from memory.learn.statements.intents import Asked, Intent, IntentKind, Reach, intents
from memory.learn.words.attributes import ATTRIBUTES
from memory.learn.words.clauses import clauses_of
from memory.learn.words.persons import kind_of
from memory.learn.words.terms import terms
from memory.learn.words.values import names_of
from memory.model import Memory, Role, Turn

SHARE_MIN = 0.5  # of what the topic names, where the words do not say all of it
LIKENESS_MIN = 0.5  # cosine that has to speak for it then
PAIRS_SHARE_MIN = 0.6  # of a Chinese topic's pairs of characters: four characters make three pairs, and one may differ
FORGET_MEMORIES_MAX = 20_000  # of one request; more than anybody has
LATER_ORDERS_MAX = 200  # that a window heeds which was learnt late; more than anybody gives
OUTCOME_IDS_MAX = 100  # named in a receipt; `count` has them all

_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_WORD = re.compile("[^\\W\\d\u3400-\u9fff][\\w-]*")
_MINE = re.compile(r"(?:my|our|mein\w*|unser\w*|mis?|nuestr[oa]s?)\b|我们?的?", re.IGNORECASE)
# Words that name nothing by themselves.
_VAGUE = terms(
    "old previous former current own whole real full everything anything thing things stuff detail details fact facts "
    "info information story part time day way life people person one ones place number said told mention mentioned "
    "alte alten frühere letzte sache antigua antiguo anterior cosa"
) | frozenset(("事情", "东西", "信息", "以前", "之前", "所有", "那个", "这个", "前的"))


@dataclass(frozen=True, slots=True)
class Order:
    """One request, and where it stands: the `message`-th message of the user in its turn."""

    turn: Turn
    message: int
    asked: Asked

    @property
    def intent(self) -> Intent:
        return self.asked.intent


@dataclass(frozen=True, slots=True)
class Spared:
    """Facts that may be learnt, and those that a request takes away."""

    kept: tuple[Fact, ...]
    withheld: tuple[Fact, ...]


def orders_of(turns: Sequence[Turn]) -> list[Order]:
    """What the user asked to be forgotten or kept out, in the order said."""
    return [
        Order(turn, index, asked)
        for turn in turns
        for index, content in enumerate(_own_messages(turn))
        for asked in intents(content)
        if asked.intent.kind is not IntentKind.REMEMBER
    ]


def topics_of(orders: Iterable[Order]) -> list[str]:
    """What has to be embedded before `meant` can be asked."""
    return list(dict.fromkeys(order.intent.topic for order in orders if order.intent.topic))


def spare(facts: Sequence[Fact], orders: Sequence[Order], turns: Sequence[Turn]) -> Spared:
    """`turns`: context and window, in the order said."""
    place = {turn.id: index for index, turn in enumerate(turns)}
    kept: list[Fact] = []
    withheld: list[Fact] = []
    for fact in facts:
        is_taken = any(_takes(order, fact, turns, place) for order in orders)
        (withheld if is_taken else kept).append(fact)
    return Spared(tuple(kept), tuple(withheld))


def lasting(orders: Sequence[Order]) -> list[Order]:
    """Those that also mean what is said before them and learnt after them, out of a dead letter, say."""
    return [order for order in orders if order.intent.reach in (Reach.TOPIC, Reach.EVERYTHING)]


def is_overtaken(
    orders: Sequence[Order], content: str, *, said_at: float, project_id: str, subject: str = "user"
) -> bool:
    """Whether one of these later, `lasting` orders means what is only being learnt now."""
    return any(
        said_at <= order.turn.at
        and not order.intent.spared  # one statement alone does not tell what else the exception may mean
        and (not order.turn.scope.project_id or project_id in ("", order.turn.scope.project_id))
        and (order.intent.reach is Reach.EVERYTHING or names(order.intent.topic, content, subject=subject))
        for order in orders
    )


Likeness = Callable[[Memory], float]
"""Cosine of a memory to the topic of the request at hand, -1..1."""


def meant(order: Order, memories: Iterable[Memory], turns: Sequence[Turn], likeness: Likeness) -> list[str]:
    """Ids of the memories that go. `memories`: all that the user has where the request was made, whatever status.

    Only those that were said before the request. `turns`: context and window, in the order said.
    """
    before = [memory for memory in memories if memory.said_at <= order.turn.at]
    match order.intent.reach:
        case Reach.EVERYTHING:
            found = before
        case Reach.TOPIC:
            found = [memory for memory in before if _is_meant(order.intent.topic, memory, likeness)]
        case Reach.PREVIOUS:
            previous = turn_meant(order, turns)
            found = [m for m in before if previous and _stands_on_alone(m, previous.id)]
        case _:
            found = []  # the message itself: nothing of it is stored yet
    if order.intent.spared:
        kept = _excepted(order.intent.spared, [(memory.content, memory.subject) for memory in before])
        found = [memory for memory in found if kept is not None and memory.content not in kept]
    return [memory.id for memory in found[:FORGET_MEMORIES_MAX]]


def _excepted(spared: str, told: Sequence[tuple[str, str]]) -> frozenset[str] | None:
    """Of what is told, content and subject, all that an exception may mean; None where it is not sure what it means.

    Every part of it has to be found. What only shares a word or a name with it is kept as well: rather too much.
    """
    parts = [part for part in SPARED_APART.split(spared) if part]
    meant_by = [[content for content, subject in told if names(part, content, subject=subject)] for part in parts]
    if not meant_by or not all(meant_by):
        return None
    called = frozenset(name for contents in meant_by for content in contents for name in names_of(content))
    words = terms(spared) - _VAGUE
    return frozenset(
        content
        for content, _ in told
        if words & terms(content) or called & names_of(content) or any(content in contents for contents in meant_by)
    )


def turn_meant(order: Order, turns: Sequence[Turn]) -> Turn | None:
    """The turn that a request means by "what I just said"; None where it means something else, or nothing is known.

    `turns`: context and window, in the order said.
    """
    is_of_previous = order.intent.reach is Reach.PREVIOUS and order.asked.is_first and order.message == 0
    return _turn_before(order.turn, turns) if is_of_previous else None


def outcomes_of(orders: Sequence[Order], forgotten: Mapping[int, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """By receipt id, the confirmation. `forgotten`: by index in `orders`, ids only."""
    by_receipt: dict[str, list[int]] = {}
    for index, order in enumerate(orders):
        if order.turn.receipt_id:
            by_receipt.setdefault(order.turn.receipt_id, []).append(index)
    return {
        receipt_id: _outcome([(orders[index].intent, forgotten.get(index, ())) for index in indexes])
        for receipt_id, indexes in by_receipt.items()
    }


def _outcome(done: Sequence[tuple[Intent, Sequence[str]]]) -> dict[str, Any]:
    ids = list(dict.fromkeys(memory_id for _, found in done for memory_id in found))
    outcome: dict[str, Any] = {}
    if any(intent.kind is IntentKind.FORGET for intent, _ in done) or ids:
        outcome |= {"forgot": ids[:OUTCOME_IDS_MAX], "count": len(ids)}
        if not ids:
            outcome["reason"] = "nothing_matched"
    if any(intent.kind is IntentKind.WITHHOLD for intent, _ in done):
        outcome["withheld"] = True
    return outcome


def _own_messages(turn: Turn) -> list[str]:
    return [m.content for m in turn.messages if m.role == Role.USER and not m.is_tool_traffic]


def _takes(order: Order, fact: Fact, turns: Sequence[Turn], place: Mapping[str, int]) -> bool:
    if order.turn.scope.project_id and fact.scope.project_id not in ("", order.turn.scope.project_id):
        return False
    here, there = place.get(order.turn.id), place.get(fact.evidence.turn_id)
    if here is None or there is None or there > here:
        return False
    if there == here and fact.evidence.role == Role.USER:
        message, position = _position(fact, order.turn)
        if message == order.message and order.asked.start <= position < order.asked.told_from:
            return True  # the request itself teaches nothing
        if message == order.message and order.intent.kind is IntentKind.WITHHOLD:
            return True
        if (message, position) > (order.message, order.asked.start):
            return False
    if order.intent.spared:
        return False  # what is not stored yet is not weighed against an exception
    return _reaches(order, fact, turns, is_of_turn=there == here)


def _reaches(order: Order, fact: Fact, turns: Sequence[Turn], *, is_of_turn: bool) -> bool:
    """Whether it means a fact that was told before it. `is_of_turn`: in the turn that it stands in."""
    match order.intent.reach:
        case Reach.EVERYTHING:
            return True
        case Reach.TOPIC:
            return names(order.intent.topic, fact.content, subject=fact.subject)
        case Reach.PREVIOUS if order.asked.is_first and order.message == 0:
            previous = _turn_before(order.turn, turns)
            return previous is not None and fact.evidence.turn_id == previous.id
        case Reach.NOTHING:
            return False
        case _:
            return is_of_turn and _position(fact, order.turn)[0] == order.message


def _position(fact: Fact, turn: Turn) -> tuple[int, int]:
    """Which message of the turn holds the quote, and where; the last message where none does."""
    messages = _own_messages(turn)
    for index, content in enumerate(messages):
        start = content.find(fact.evidence.quote)
        if start >= 0:
            return index, start
    return len(messages), 0


def _turn_before(turn: Turn, turns: Sequence[Turn]) -> Turn | None:
    index = next((index for index, other in enumerate(turns) if other.id == turn.id), 0)
    return turns[index - 1] if index else None


def _stands_on_alone(memory: Memory, turn_id: str) -> bool:
    is_on_it = any(quoted.turn_id == turn_id for quoted in memory.evidence)
    return is_on_it and without_source(memory, turn_id, now=memory.updated_at) is None


def _is_meant(topic: str, memory: Memory, likeness: Likeness) -> bool:
    if names(topic, memory.content, subject=memory.subject):
        return True
    share = _share(topic, memory.content)
    if share < SHARE_MIN or not names_of(topic) <= names_of(memory.content) or _is_of_another(topic, memory.subject):
        return False
    if not _named(topic).qualifiers <= terms(memory.content):
        return False  # "my work phone" is not the phone at home, however alike the two sound
    return likeness(memory) >= LIKENESS_MIN


def names(topic: str, content: str, *, subject: str = "user") -> bool:
    """Whether `content` says all that `topic` names, and speaks of the same person, or of that one, too."""
    enough = PAIRS_SHARE_MIN if _IDEOGRAPH.search(topic) else 1.0
    if _share(topic, content) < enough:
        return False
    return not _is_of_another(topic, subject) or _is_of_user_too(topic, content)


def _is_of_user_too(topic: str, content: str) -> bool:
    """Whether a part of it tells the attribute as the user's: "my sister lives in Oslo and I live in Leeds"."""
    named = _named(topic)
    parts = [part.text for part in clauses_of(content) if opens_with_user(part.text)]
    return bool(named.attributes) and all(
        any(_tells_of(pattern, owners, kind, part) for part in parts)
        for pattern, owners, kind in zip(named.attributes, named.owners, named.kinds, strict=True)
    )


@dataclass(slots=True)
class _Named:
    """What a topic names: attributes that both sides may word differently, and plain words.

    `owners`, `kinds`: of each attribute, whose it is and of what sort. `qualifiers`: the words right before one.
    """

    attributes: list[re.Pattern[str]] = field(default_factory=list)
    owners: list[frozenset[str]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    words: frozenset[str] = frozenset()
    qualifiers: frozenset[str] = frozenset()


def _share(topic: str, content: str) -> float:
    """How much of what the topic names the content says, 0..1; 0 for a topic that names nothing, or another's."""
    named = _named(topic)
    total = len(named.attributes) + len(named.words)
    if not total:
        return 0.0
    for pattern, owners, kind in zip(named.attributes, named.owners, named.kinds, strict=True):
        if not _tells_of(pattern, owners, kind, content):
            return 0.0  # the attribute is what the request is about
    if not named.attributes and _is_of_somebody_else(topic, content, named.words):
        return 0.0
    said = len(named.attributes) + len(named.words & terms(content))
    return said / total


def _tells_of(pattern: re.Pattern[str], owners: frozenset[str], kind: str, content: str) -> bool:
    """Whether the content speaks of the attribute as that person's."""
    return any(
        kind_of(content, match.start(), match.end()) == kind
        and bool(owners_of(content, match.start(), match.end()) & owners)
        for match in pattern.finditer(content)
    )


def _is_of_somebody_else(topic: str, content: str, words: frozenset[str]) -> bool:
    """ "My operation" where only the father's is spoken of. What is asked for without "my" may be anybody's."""
    if not _MINE.match(topic):
        return False
    told = [owners_of(content, start, end) for start, end in _places(content, words)]
    asked = [owners_of(topic, start, end) for start, end in _places(topic, words)]
    return bool(told and asked) and not any(owners & asked[0] for owners in told)


def _places(text: str, words: frozenset[str]) -> list[tuple[int, int]]:
    """Where the text says any of the words; in Chinese, any of the pairs of characters."""
    if _IDEOGRAPH.search(text):
        return [(start, start + len(pair)) for pair in sorted(words) if (start := text.find(pair)) >= 0]
    return [match.span() for match in _WORD.finditer(text) if terms(match.group()) & words]


def _named(topic: str) -> _Named:
    found = _Named()
    rest, qualifiers = topic, ""
    for asked, said in ATTRIBUTES:
        match = asked.search(topic)
        if match and asked.search(rest):
            found.attributes.append(said)
            found.owners.append(owners_of(topic, match.start(), match.end()))
            found.kinds.append(kind_of(topic, match.start(), match.end()))
            qualifiers += " " + " ".join(topic[: match.start()].split()[-1:])
            rest = asked.sub(" ", rest)
    found.words = terms(rest) - _VAGUE
    found.qualifiers = terms(qualifiers) & found.words
    return found


def _is_of_another(topic: str, subject: str) -> bool:
    """ "My job" does not mean the sister's job."""
    if subject in ("", "user") or terms(subject) & terms(topic):
        return False
    return not any(said.search(subject) and asked.search(topic) for asked, said in ATTRIBUTES)


__all__ = [
    "Order",
    "Spared",
    "is_overtaken",
    "lasting",
    "meant",
    "names",
    "orders_of",
    "outcomes_of",
    "spare",
    "topics_of",
]
