"""Chooses the sentences of a stretch of conversation that are worth keeping.

Pure. What a user's sentence means was decided by the reader, in its claims. Everything else is lexical: which sentences
name somebody or something, or hold a number, and which question was left without an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from memory.chat.exchanges import Exchange
from memory.language import bare_reply, content_words
from memory.model import STORED_ACTS, Act, Claim, Role, StateItem, StateItemKind, Stretch, statement_key

ITEM_CHARACTERS_MAX = 160  # of one sentence; what is longer is shortened
ANSWER_CHARACTERS_MAX = 120
TOPIC_CHARACTERS_MAX = 36
CODE_CHARACTERS_MIN = 5  # of a token of letters and digits that is taken for a reference
# What a sentence is worth. What the reader claims is what people come back to, whether or not it becomes a memory.
NAMED, PLAIN, CLAIMED, OPEN = 0.6, 0.45, 0.35, 0.3
REFERENCE, CHOSEN, STATED = 0.2, 0.15, 0.1  # more; STATED: the reader claims it
ANSWERED = 0.1  # less, since an answer is not the user's own

# Confidence from which a message is more likely planted than not. Learning refuses at a slight suspicion, since
# memories outlive the conversation; the message that a state repeats stands in that same conversation.
PLANTED_MIN = 0.83
REMEMBERED_MIN = 0.8  # confidence from which a claim is sure to become a memory; learning takes some from 0.7

SPECIFICS_MAX = 4  # names and numbers of a sentence that count

_CHOSEN = frozenset({"decision", "goal"})
_EDGES = ".,;:!?\"'()[]{}*_`’“”«»„…"

Sentences = Callable[[str], Sequence[str]]
"""Splits a message into the sentences that are its author's own."""


@dataclass(frozen=True, slots=True)
class Specifics:
    """What a sentence names: words that are names, tokens with digits, and references such as `QX7-4412`."""

    names: int = 0
    numbers: int = 0
    references: int = 0

    @property
    def weight(self) -> int:
        return min(self.names + self.numbers, SPECIFICS_MAX)

    @property
    def is_concrete(self) -> bool:
        """Whether somebody may come back to it: a reference, or a number that belongs to a name."""
        return bool(self.references or (self.names and self.numbers))


def stretch_of(exchanges: Sequence[Exchange], claims: Sequence[Claim], sentences: Sentences) -> Stretch:
    """The stretch of these exchanges. `claims`: what the reader found in them."""
    items: list[StateItem] = []
    for place, exchange in enumerate(exchanges):
        following = exchanges[place + 1] if place + 1 < len(exchanges) else None
        said = [m.content for m in exchange.said if m.role == Role.USER]
        items += _of_user(said, claims, sentences)
        items += _of_assistant(exchange.answer, sentences)
        if following is not None:
            items += _left_open(exchange.answer, following, sentences)
    return Stretch(_topic(exchanges, sentences), tuple(_once(items)))


def specifics_of(sentence: str) -> Specifics:
    """Capitalised words other than the first count as names: a guess that costs some tokens where it is wrong."""
    names = numbers = references = 0
    for place, word in enumerate(sentence.split()):
        bare = word.strip(_EDGES)
        digits = sum(character.isdigit() for character in bare)
        letters = sum(character.isalpha() for character in bare)
        if digits:
            numbers += 1
            references += (
                digits + letters >= CODE_CHARACTERS_MIN and letters > 0 and digits > 0 and bare != bare.lower()
            )
        elif place and len(bare) > 1 and bare[0].isupper():
            names += 1
    return Specifics(names, numbers, references)


def shortened(text: str, most: int = ITEM_CHARACTERS_MAX) -> str:
    """At most so many characters, cut at a space."""
    if len(text) <= most:
        return text
    return text[:most].rpartition(" ")[0] + " …" if " " in text[:most] else text[:most] + "…"


def _of_user(said: Iterable[str], claims: Sequence[Claim], sentences: Sentences) -> Iterable[StateItem]:
    for message in said:
        own = [claim for claim in claims if claim.evidence.quote in message]
        if any(claim.act is Act.INSTRUCT and claim.confidence >= PLANTED_MIN for claim in own):
            continue
        own = [claim for claim in own if claim.act is not Act.INSTRUCT]
        spoken = {claim.text: claim for claim in own if claim.act in STORED_ACTS}
        for claim in spoken.values():
            yield _claimed(claim)
        for sentence in sentences(message):
            if any(sentence in claim.evidence.quote or claim.evidence.quote in sentence for claim in own):
                continue  # said by a claim, or not to be kept
            if not sentence.rstrip().endswith(("?", "？")):
                yield StateItem(StateItemKind.FACT, shortened(sentence), _worth(specifics_of(sentence)))


def _claimed(claim: Claim) -> StateItem:
    is_chosen = claim.category in _CHOSEN or claim.attribute == "plan"
    score = max(CLAIMED + 0.1 * claim.importance, _worth(specifics_of(claim.text)) + STATED)
    if claim.confidence < REMEMBERED_MIN:
        score += CHOSEN if is_chosen else 0.0
    return StateItem(StateItemKind.DECISION if is_chosen else StateItemKind.FACT, shortened(claim.text), score)


def _of_assistant(answer: str, sentences: Sentences) -> Iterable[StateItem]:
    """The one sentence of an answer with most names and numbers, references first."""
    rated = [(specifics_of(sentence), sentence) for sentence in sentences(answer)]
    rated = [(found, said) for found, said in rated if found.is_concrete and not said.endswith(("?", "？"))]
    if rated:
        found, sentence = max(rated, key=lambda one: (one[0].references, one[0].weight))
        yield StateItem(StateItemKind.ANSWER, shortened(sentence, ANSWER_CHARACTERS_MAX), _worth(found) - ANSWERED)


def _left_open(answer: str, following: Exchange, sentences: Sentences) -> Iterable[StateItem]:
    """The question that an answer ends with, if the user's next message takes up nothing of it."""
    (*_, last) = ["", *sentences(answer)]
    if not last.endswith(("?", "？")):
        return
    reply = " ".join(message.content for message in following.said if message.role == Role.USER)
    if not bare_reply(reply) and not content_words(last) & content_words(reply):
        yield StateItem(StateItemKind.QUESTION, shortened(last), OPEN)


def _worth(found: Specifics) -> float:
    """Of a sentence that the reader did not claim, so that no memory holds it."""
    named = NAMED + 0.05 * found.weight if found.weight else PLAIN
    return named + (REFERENCE if found.references else 0.0)


def _topic(exchanges: Sequence[Exchange], sentences: Sentences) -> str:
    """The first sentence of the user in the stretch."""
    for exchange in exchanges:
        for message in exchange.said:
            if message.role == Role.USER and (found := sentences(message.content)):
                return shortened(found[0], TOPIC_CHARACTERS_MAX)
    return ""


def _once(items: Iterable[StateItem]) -> list[StateItem]:
    """Each sentence once, where it was said last: what was said later holds."""
    latest: dict[str, StateItem] = {}
    for item in items:
        key = statement_key(item.text)
        earlier = latest.pop(key, None)
        latest[key] = item if earlier is None else replace(item, score=max(item.score, earlier.score))
    return list(latest.values())
