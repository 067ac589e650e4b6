"""Chooses the sentences of a segment of conversation that are worth keeping.

Pure. What a user's sentence means was decided before: by the reader, in its claims, and by the kinds of sentences. Here
they are only weighed, with the names and numbers that they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memory.chat.exchanges import Exchange
from memory.language import is_asked
from memory.model import NEEDED, STORED_ACTS, Act, Claim, HistorySegment, Role, StateItem, StateItemKind, statement_key
from memory.sessions.compaction.sentence_kinds import TOLD, SentenceKind

ITEM_CHARACTERS_MAX = 160  # of one sentence; what is longer is shortened, unless it is needed
NEEDED_CHARACTERS_MAX = 400
ANSWER_CHARACTERS_MAX = 120
TOPIC_CHARACTERS_MAX = 36
CODE_CHARACTERS_MIN = 5  # of a token of letters and digits that is taken for a reference
# What a sentence is worth that is not needed.
NAMED, PLAIN = 0.6, 0.4
REFERENCE, STATED = 0.2, 0.1  # more; STATED: the reader takes it for a claim, but is in doubt
PASTED = 0.3  # less, for what may be the text of an errand
ANSWERED = 0.3  # less, for an answer without a reference, since it is not the user's own

# Confidence from which a message is more likely planted than not. Learning refuses at a slight suspicion, since
# memories outlive the conversation; the message that a state repeats stands in that same conversation.
PLANTED_MIN = 0.83
CLAIMED_MIN = 0.7  # confidence from which the reader is sure of a claim; equals the gate's minimum

ORDERED_MIN = 0.9  # confidence from which an order not to keep a sentence holds whatever kind it is of
SPECIFICS_MAX = 4  # names and numbers of a sentence that count
OWN_SENTENCES_MAX = 5  # of a message whose sentences are taken for the user's own; a longer one may be a pasted text

SETTLING = frozenset({SentenceKind.DECISION, SentenceKind.OPEN})
ITEM_KINDS: Mapping[SentenceKind, StateItemKind] = {
    SentenceKind.DECISION: StateItemKind.DECISION,
    SentenceKind.OPEN: StateItemKind.QUESTION,
}
_CHOSEN = frozenset({"decision", "goal"})  # categories of the reader
_EDGES = ".,;:!?\"'()[]{}*_`’“”«»„…"
FIRST_UNSPACED = "\u2e80"  # from which on scripts are written without spaces
_OPENING_ENDS = ":：,，、"
_COLONS = ":："
OPENING_CHARACTERS_MIN = 5  # with those of scripts without spaces as three

Sentences = Callable[[str], Sequence[str]]
"""Splits a message into the sentences that are its author's own."""


@dataclass(frozen=True, slots=True)
class ToldSentence:
    """A sentence of the user. `kind`: None if it is in doubt; `claims`: of the reader, that it may be kept for."""

    text: str
    kind: SentenceKind | None
    claims: tuple[Claim, ...]

    @property
    def is_asked(self) -> bool:
        return is_asked(self.text)


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


def segment_of(
    exchanges: Sequence[Exchange], claims: Sequence[Claim], kinds: Mapping[str, SentenceKind], sentences: Sentences
) -> HistorySegment:
    """The segment of these exchanges. `claims`: what the reader found in them; `kinds`: of the user's sentences."""
    items: list[StateItem] = []
    for exchange in exchanges:
        for message in users_messages(exchange):
            items += _of_user(told_sentences(message, claims, kinds, sentences))
        items += _of_assistant(exchange.answer, sentences)
    items += [_agreed(claim) for claim in claims if claim.evidence.role == Role.ASSISTANT and _is_sure(claim)]
    return HistorySegment(_topic(exchanges, sentences), tuple(_once(items)))


def users_messages(exchange: Exchange) -> list[str]:
    return [message.content for message in exchange.said if message.role == Role.USER]


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


def told_sentences(
    message: str, claims: Sequence[Claim], kinds: Mapping[str, SentenceKind], sentences: Sentences
) -> list[ToldSentence]:
    """The sentences of a message that may be kept; none of one in which somebody has planted instructions.

    Where the kind of a sentence speaks for it, the reader has to be sure of an order, and does not decide alone.
    """
    own = [claim for claim in claims if claim.evidence.quote in message]
    found: list[ToldSentence] = []
    for sentence in sentences(message):
        said = [one for one in own if sentence in one.evidence.quote or one.evidence.quote in sentence]
        kind = _kind_of(sentence, kinds)
        if kind not in TOLD and any(one.act is Act.INSTRUCT and one.confidence >= PLANTED_MIN for one in said):
            return []
        ordered_min = ORDERED_MIN if kind in TOLD else 0.0
        if not any(one.act not in STORED_ACTS | {Act.INSTRUCT} and one.confidence >= ordered_min for one in said):
            found.append(ToldSentence(sentence, kind, tuple(one for one in said if one.act in STORED_ACTS)))
    return found


def opening_of(sentence: str) -> str:
    """What stands before the first colon or comma, if that says something: "Continue the story", "Translate this"."""
    opening = sentence[: next((place for place, one in enumerate(sentence) if one in _OPENING_ENDS), 0)]
    size = sum(3 if character >= FIRST_UNSPACED else 1 for character in opening)
    return opening if size >= OPENING_CHARACTERS_MIN else ""


def _kind_of(sentence: str, kinds: Mapping[str, SentenceKind]) -> SentenceKind | None:
    """An errand is one whatever text follows it."""
    kind, opening = kinds.get(sentence), opening_of(sentence)
    is_errand = kinds.get(opening) is SentenceKind.REQUEST
    if is_errand and kind in SETTLING:  # "Can you believe it, we took the flat"
        is_errand = sentence[len(opening)] in _COLONS
    return SentenceKind.REQUEST if is_errand else kind


def _of_user(told: Sequence[ToldSentence]) -> Iterable[StateItem]:
    """What follows an errand is the text that it is about, unless the reader claims it."""
    is_pasted = len(told) > OWN_SENTENCES_MAX
    for one in told:
        item = _item(one, is_pasted=is_pasted)
        if item is not None:
            yield item
        is_pasted |= one.kind is SentenceKind.REQUEST and not one.is_asked


def _item(one: ToldSentence, *, is_pasted: bool) -> StateItem | None:
    """What has to stay, and what may. `is_pasted`: perhaps, so that its own words do not make it the user's."""
    sure = [claim for claim in one.claims if _is_sure(claim)]
    is_told = one.kind in TOLD and not is_pasted and (not one.is_asked or one.kind is SentenceKind.OPEN)
    if sure or is_told:
        fact = StateItemKind.DECISION if any(map(_is_chosen, sure)) else StateItemKind.FACT
        kind = ITEM_KINDS.get(one.kind, fact) if is_told and one.kind is not None else fact
        return StateItem(kind, _whole(one.text, sure), NEEDED)
    found = specifics_of(one.text)
    if one.is_asked or one.kind is SentenceKind.REQUEST or (one.kind is SentenceKind.OTHER and not found.weight):
        return None
    worth = _worth(found) + (STATED if one.claims else 0.0)
    return StateItem(StateItemKind.FACT, shortened(one.text), worth - (PASTED if is_pasted else 0.0))


def _agreed(claim: Claim) -> StateItem:
    """What the user has said yes or no to: the assistant's question with that."""
    kind = StateItemKind.DECISION if _is_chosen(claim) else StateItemKind.FACT
    return StateItem(kind, shortened(claim.text, NEEDED_CHARACTERS_MAX), NEEDED)


def _is_sure(claim: Claim) -> bool:
    return claim.act in STORED_ACTS and claim.confidence >= CLAIMED_MIN


def _is_chosen(claim: Claim) -> bool:
    return claim.category in _CHOSEN or claim.attribute == "plan"


def _whole(sentence: str, claims: Sequence[Claim]) -> str:
    """The sentence, or the claim that says more, where it leans on what was said before."""
    told = max((claim.text for claim in claims if claim.leans), key=len, default="")
    return shortened(told if len(told) > len(sentence) else sentence, NEEDED_CHARACTERS_MAX)


def _of_assistant(answer: str, sentences: Sentences) -> Iterable[StateItem]:
    """The one sentence of an answer with most names and numbers, references first."""
    rated = [(specifics_of(sentence), sentence) for sentence in sentences(answer)]
    rated = [(found, said) for found, said in rated if found.is_concrete and not is_asked(said)]
    if rated:
        found, sentence = max(rated, key=lambda one: (one[0].references, one[0].weight))
        worth = _worth(found) - (0.0 if found.references else ANSWERED)
        yield StateItem(StateItemKind.ANSWER, shortened(sentence, ANSWER_CHARACTERS_MAX), worth)


def _worth(found: Specifics) -> float:
    named = NAMED + 0.05 * found.weight if found.weight else PLAIN
    return named + (REFERENCE if found.references else 0.0)


def _topic(exchanges: Sequence[Exchange], sentences: Sentences) -> str:
    """The first sentence of the user in the segment."""
    said = (sentence for one in exchanges for message in users_messages(one) for sentence in sentences(message))
    return shortened(next(said, ""), TOPIC_CHARACTERS_MAX)


def _once(items: Iterable[StateItem]) -> list[StateItem]:
    """Each sentence once, where it was said last: what was said later holds."""
    latest: dict[str, StateItem] = {}
    for item in items:
        key = statement_key(item.text)
        earlier = latest.pop(key, None)
        latest[key] = item if earlier is None else replace(item, score=max(item.score, earlier.score))
    return list(latest.values())
