"""Validates a chat model's claims: what they refer to must exist, and what they add must occur in the quote.

The quote is the message text from the first unit to the last, hence verbatim; the clause is a part of it. A claim with
invalid units, clause, act or values is rejected; any other invalid field is dropped. The model is told about both once.
Content in the model's own words counts only if it adds nothing to what was said; otherwise the clause does. What a
sentence means is not examined. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from memory.language import bare_reply, is_denied
from memory.language.dates import period
from memory.language.restating import adds_nothing, as_typed
from memory.learn.reading.answers import CONFIDENCE, LEVELS, UNITS_OF_CLAIM_MAX, VALUES_MAX, ProposedClaim
from memory.learn.reading.labels import IMPORTANCE, IMPORTANCE_ASKED, type_of
from memory.learn.reading.replies import answered
from memory.learn.reading.transcript import AuthorMessage, Transcript
from memory.learn.reading.units import unwrapped
from memory.model import (
    ATTRIBUTES,
    CATEGORIES,
    EXPLICIT_ACTS,
    NO_ATTRIBUTE,
    STORED_ACTS,
    Act,
    Claim,
    Evidence,
    Relation,
)
from memory.typed import converted

QUOTE_CHARACTERS_MAX = 800  # two units of maximum length
NEAR_DAYS = 400.0  # maximum distance between message and date if only words such as "next March" give the date
DAY_SECONDS = 86_400.0
CONTENT_CHARACTERS_MAX = 600
# For other acts the fields are not used, so that they are not worth another call.
_WITH_FIELDS = STORED_ACTS | {Act.FORGET}

_Bounds = tuple[float | None, float | None]
_Typed = Callable[[str], str]  # the word as the author typed it; "" if it does not occur

_NUMBER = re.compile(r"\d+")
_FULL_DATE = re.compile(r"(?<!\d)(?:\d{4}[-/.年]\d|\d{1,2}[-/.]\d{1,2}[-/.]\d{2})")


@dataclass(frozen=True, slots=True)
class LocatedClaim:
    """A claim, and where its clause begins and ends: the number of the message's first unit, and the character."""

    claim: Claim
    first: tuple[int, int]
    last: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """`doubtful`: claims that lost a field. `objections`: what the model could correct, worded for it.

    `refused`: number of rejected claims.
    """

    sound: tuple[LocatedClaim, ...] = ()
    doubtful: tuple[LocatedClaim, ...] = ()
    objections: tuple[str, ...] = ()
    refused: int = 0


class _Invalid(ValueError):
    """The claim, or a date of it, is rejected. The message tells the model what to correct."""


def check_answer(items: Sequence[Any], transcript: Transcript, *, made_by: str) -> CheckedAnswer:
    """`items`: the decoded items of the answer, in order."""
    sound: list[LocatedClaim] = []
    doubtful: list[LocatedClaim] = []
    objections: list[str] = []
    for number, item in enumerate(items, 1):
        try:
            placed, wrong = _placed(_read(item), transcript, made_by)
        except _Invalid as refused:
            objections.append(f"claim {number}: {refused}")
            continue
        (doubtful if wrong else sound).append(placed)
        objections += [f"claim {number}: {one}" for one in wrong]
    return CheckedAnswer(tuple(sound), tuple(doubtful), tuple(objections), len(items) - len(sound) - len(doubtful))


def merge_second_answer(first: CheckedAnswer, second: CheckedAnswer) -> list[LocatedClaim]:
    """The claims of an answer after some were sent back for correction.

    The second answer may change only what was objected to, otherwise a weak model would rewrite other claims as well: a
    claim that lost a field is replaced only by one of the same clause and act; in place of rejected claims, new ones
    are accepted over words that no claim has.
    """
    mends = {(new.first, new.last, new.claim.act): new for new in reversed(second.sound)}
    kept = [*first.sound, *(mends.get((old.first, old.last, old.claim.act), old) for old in first.doubtful)]
    fresh = [
        new
        for new in (*second.sound, *second.doubtful)
        if not any(new.first < old.last and old.first < new.last for old in kept)
    ]
    return [*kept, *fresh[: first.refused]]


def distinct_claims(found: Sequence[LocatedClaim]) -> list[Claim]:
    """In the order said. Of stored claims that say one fact, the most confident, then longest, is kept."""
    kept: list[LocatedClaim] = []
    for one in sorted(found, key=lambda one: (-one.claim.confidence, one.first[1] - one.last[1])):
        if not any(_says_it_too(other, one) for other in kept):
            kept.append(one)
    return [one.claim for one in sorted(kept, key=lambda one: (one.first, one.last))]


def _says_it_too(other: LocatedClaim, one: LocatedClaim) -> bool:
    """Whether it is the same clause again, or a part of it with no value of its own."""
    is_alike = one.claim.act is other.claim.act or {one.claim.act, other.claim.act} <= STORED_ACTS
    is_within = other.first <= one.first and one.last <= other.last
    has_no_own = one.claim.text == other.claim.text or set(one.claim.values) <= set(other.claim.values)
    return is_alike and is_within and has_no_own


def _read(item: Any) -> ProposedClaim:  # noqa: ANN401 - whatever JSON can hold
    try:
        return converted(item, ProposedClaim)
    except msgspec.ValidationError:
        raise _Invalid("a field is missing or has the wrong form") from None


def _placed(proposed: ProposedClaim, transcript: Transcript, made_by: str) -> tuple[LocatedClaim, list[str]]:
    """The claim without invalid fields, and the objections to those."""
    numbers = sorted({proposed.u} if isinstance(proposed.u, int) else set(proposed.u))
    said, start, quote = _quoted(numbers, transcript)
    clause = as_typed(proposed.clause, quote) if proposed.clause.strip() else quote
    if not clause:
        raise _Invalid('"clause" must stand in the sentences that "u" names, word for word')
    act = _act(proposed.act)
    wrong: list[str] = []
    of_turn = (place.said.text for place in transcript.numbered_units if place.said.turn.id == said.turn.id)
    written = list(dict.fromkeys(of_turn))  # of no other turn, since a fact goes with the turn that it quotes
    written = written[: written.index(said.text) + 1]  # up to this message
    told = "\n".join(written)  # of which the model's content may put a word for a pronoun

    def typed(word: str) -> str:
        return as_typed(word, quote) or (as_typed(word, told) if as_typed(word, proposed.content) else "")

    values = _values(proposed, typed, wrong)
    if wrong and not values and act in _WITH_FIELDS:
        raise _Invalid(wrong[0])  # a weak model names the wrong sentence rather than the wrong words
    relation = _one_of(proposed.about, tuple(Relation), Relation.OTHER, "about", wrong)
    attribute = _one_of(proposed.attr, (NO_ATTRIBUTE, *ATTRIBUTES), NO_ATTRIBUTE, "attr", wrong)
    category = _one_of(proposed.category, CATEGORIES, "fact", "category", wrong)
    category = "correction" if act is Act.CORRECT else category
    holds_from, holds_until = _period(proposed, clause, quote, said.turn.local_at, wrong)
    claim = Claim(
        act=act,
        text=unwrapped(clause),
        evidence=Evidence(quote, said.turn.id, clause=clause),
        scope=said.turn.scope,
        said_at=said.turn.at,
        utc_offset=said.turn.utc_offset,
        relation=Relation(relation),
        name=_name(proposed, relation, typed, wrong),
        attribute=attribute,
        values=values,
        is_affirmed=not proposed.no,
        holds_from=holds_from,
        holds_until=holds_until,
        memory_type=type_of(act, attribute, category),
        category=category,
        confidence=CONFIDENCE.get(proposed.sure.strip().casefold(), CONFIDENCE[LEVELS[-1]]),
        importance=IMPORTANCE_ASKED if act in EXPLICIT_ACTS else IMPORTANCE[category],
        made_by=made_by,
    )
    message = next(n for n, place in enumerate(transcript.numbered_units, 1) if place.said is said)
    start += quote.index(clause)
    claim = _understandable(claim, proposed.content.strip(), said, written, wrong)
    return LocatedClaim(claim, (message, start), (message, start + len(clause))), wrong if act in _WITH_FIELDS else []


def _quoted(numbers: Sequence[int], transcript: Transcript) -> tuple[AuthorMessage, int, str]:
    """The message, and its text from the first unit to the last with its position. Raises `_Invalid`."""
    if not numbers:
        raise _Invalid('"u" must name a number')
    if numbers[0] < 1 or numbers[-1] > len(transcript.numbered_units):
        raise _Invalid(f'"u" must name numbers between 1 and {len(transcript.numbered_units)}')
    places = [transcript.numbered_units[number - 1] for number in numbers]
    said, first, last = places[0].said, places[0].index, places[-1].index
    are_neighbours = [place.index for place in places] == list(range(first, first + len(places)))
    if any(place.said is not said for place in places) or not are_neighbours or len(places) > UNITS_OF_CLAIM_MAX:
        raise _Invalid('"u" must name one number, or a few neighbours in one message')
    start = said.units[first].start
    quote = said.text[start : said.units[last].end]
    if len(quote) > QUOTE_CHARACTERS_MAX:
        raise _Invalid('"u" names too much text for one claim')
    return said, start, quote


def _act(word: str) -> Act:
    try:
        return Act(word.strip().casefold())
    except ValueError:
        raise _Invalid(f'"act" must be one of {", ".join(Act)}') from None


def _one_of(word: str, known: Sequence[str], other: str, name: str, wrong: list[str]) -> str:
    plain = word.strip().casefold()
    if plain in known:
        return plain
    wrong.append(f'"{name}" must be one of those given')
    return other


def _name(proposed: ProposedClaim, relation: str, typed: _Typed, wrong: list[str]) -> str:
    """As typed; "" for the author."""
    name = proposed.name.strip() if relation != Relation.USER else ""
    if name and not typed(name):
        wrong.append('"name" must stand in the sentences that "u" names')
    return typed(name)


def _values(proposed: ProposedClaim, typed: _Typed, wrong: list[str]) -> tuple[str, ...]:
    given = proposed.values if isinstance(proposed.values, list) else [proposed.values]
    found = [typed(word) for word in (str(value).strip() for value in given[:VALUES_MAX]) if word]
    if not all(found):
        wrong.append('each of "values" must stand in the sentences that "u" names, as typed')
    return tuple(dict.fromkeys(filter(None, found)))


def _period(proposed: ProposedClaim, clause: str, quote: str, said_at: float, wrong: list[str]) -> _Bounds:
    """The period in Unix seconds: from the start of the first day to the end of the last one.

    A bound without a valid date of the model is what the date words of the clause say, where they are unambiguous.
    """
    certain, when = period(clause, said_at), as_typed(proposed.when, quote)
    named = certain[0], period(when or clause, said_at, with_end=True)[1]  # also the end of "last week"
    found: list[float | None] = []
    for place, word in enumerate((proposed.from_.strip(), proposed.until.strip())):
        try:
            span = _span(word, quote, when, said_at, named[place]) if word else None
        except _Invalid as unfounded:
            span = None
            if certain == (None, None):
                wrong.append(str(unfounded))
        found.append(certain[place] if span is None else span[place])
    begin, end = found
    if begin is not None and end is not None and end <= begin:
        wrong.append('"until" must not lie before "from"')
        return certain
    return begin, end


def _span(word: str, quote: str, when: str, said_at: float, certain: float | None) -> tuple[float, float]:
    """Begin and end of the day, month or year. Raises `_Invalid` unless its numbers occur in the quote, or the words
    are `certain` of it, or the words `when` may mean it: "国庆".
    """
    begin, end = period(f"in {word}", said_at, with_end=True)  # also of "2024"
    numbers = [int(number) for number in _NUMBER.findall(word)]
    if begin is None or end is None or not numbers:
        raise _Invalid("a date must read YYYY-MM-DD, YYYY-MM or YYYY")
    stated = {int(number) for number in _NUMBER.findall(quote)}
    has_year, rest = numbers[0] in stated, set(numbers[1:])
    near = NEAR_DAYS * DAY_SECONDS
    if rest <= stated and (has_year or (rest and numbers[0] % 100 in stated)):
        follows = True
    elif certain is not None:
        follows = begin <= certain <= end
    else:
        is_near = bool(when) and begin <= said_at + near and end >= said_at - near
        follows = (has_year or is_near) and not _FULL_DATE.search(when or quote)
    if not follows:
        raise _Invalid('a date must follow from words of the sentences, which "when" gives as typed')
    return begin, end


def _understandable(claim: Claim, content: str, said: AuthorMessage, written: Sequence[str], wrong: list[str]) -> Claim:
    """The claim in the model's words, if every name, number and content word of them was said; otherwise as it is.

    What replies to a question may take its words along where those of the author do not do, marked as the assistant's;
    what begins the reply takes it as it is if the model's words are refused.
    """
    is_reply = claim.evidence.quote == claim.evidence.words and len(said.units) == 1
    if claim.act is Act.CONFIRM and is_reply and said.question and content and not bare_reply(claim.text):
        claim = replace(claim, act=Act.STATE)  # "Yes, both of them"
    if is_reply and (bare_reply(claim.text) or claim.act not in STORED_ACTS):
        return answered(claim, said.question, said.asked_in, leans=False)
    if not content or claim.act not in STORED_ACTS:
        return claim
    for question in dict.fromkeys(("", said.question)):
        if _is_said(content, claim, [*written, question], question):
            return replace(claim, text=content, question=question)
    claim = replace(claim, values=tuple(value for value in claim.values if as_typed(value, claim.evidence.quote)))
    is_first = said.text.startswith(claim.evidence.words, said.units[0].start)
    if is_first and said.question and claim.act is not Act.CORRECT and not bare_reply(claim.text):
        return answered(claim, said.question, said.asked_in, leans=True)
    wrong.append('"content" must say it in words of the author, with its "values"')
    return replace(claim, leans=claim.act is Act.CORRECT)  # the model says that it cannot be understood alone


def _is_said(content: str, claim: Claim, sources: Sequence[str], question: str) -> bool:
    """Whether it adds nothing, has the claim's values, and denies as its sentence does: "I don't eat meat or fish"."""
    may_deny = is_denied(claim.evidence.quote) or is_denied(question)
    return (
        len(content) <= CONTENT_CHARACTERS_MAX
        and is_denied(claim.text) <= is_denied(content) <= may_deny
        and all(as_typed(value, content) for value in claim.values)
        and adds_nothing(content, sources, new_words_max=0.0)
    )
