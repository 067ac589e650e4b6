"""Validates a chat model's claims: what they refer to must exist, and what they add must occur in the quote.

The quote is the message text from the first unit to the last, hence verbatim; the clause is a part of it. A claim with
invalid units, clause, act or values is rejected; any other invalid field is dropped. The model is told about both once.
Content in the model's own words counts only if it adds nothing to what was said; otherwise the clause does. What a
sentence means is not examined. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
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

QUOTE_CHARACTERS_MAX = 800  # two units of maximum length
NEAR_DAYS = 400.0  # maximum distance between message and date if only words such as "next March" give the date
DAY_SECONDS = 86_400.0
CONTENT_CHARACTERS_MAX = 600
# For other acts the fields are not used, so that they are not worth another call.
_WITH_FIELDS = STORED_ACTS | {Act.FORGET}

_Bounds = tuple[float | None, float | None]

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


class _UnsupportedDate(ValueError):
    """A date that the quote does not support. The message tells the model what to correct."""


class _InvalidClaim(ValueError):
    """The claim is rejected. The message tells the model what to correct."""


def check_answer(items: Sequence[Any], transcript: Transcript, *, made_by: str) -> CheckedAnswer:
    """`items`: the decoded items of the answer, in order."""
    sound: list[LocatedClaim] = []
    doubtful: list[LocatedClaim] = []
    objections: list[str] = []
    for number, item in enumerate(items, 1):
        try:
            placed, wrong = _placed(_read(item), transcript, made_by)
        except _InvalidClaim as refused:
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
    if not is_alike or not (other.first <= one.first and one.last <= other.last):
        return False
    is_same_text = one.claim.text == other.claim.text
    return is_same_text or set(one.claim.values) <= set(other.claim.values)


def _read(item: Any) -> ProposedClaim:  # noqa: ANN401 - whatever JSON can hold
    try:
        return msgspec.convert(item, ProposedClaim)
    except msgspec.ValidationError:
        raise _InvalidClaim("a field is missing or has the wrong form") from None


def _placed(proposed: ProposedClaim, transcript: Transcript, made_by: str) -> tuple[LocatedClaim, list[str]]:
    """The claim without invalid fields, and the objections to those."""
    numbers = sorted({proposed.u} if isinstance(proposed.u, int) else set(proposed.u))
    said, start, quote = _quoted(numbers, transcript)
    clause = as_typed(proposed.clause, quote) if proposed.clause.strip() else quote
    if not clause:
        raise _InvalidClaim('"clause" must stand in the sentences that "u" names, word for word')
    act = _act(proposed.act)
    wrong: list[str] = []
    written = list(dict.fromkeys(place.said.text for place in transcript.numbered_units))
    written = written[: written.index(said.text) + 1]  # up to this message
    words = _Words(quote, "\n".join(written), proposed.content)
    values = _values(proposed, words, wrong)
    if wrong and not values and act in _WITH_FIELDS:
        raise _InvalidClaim(wrong[0])  # a weak model names the wrong sentence rather than the wrong words
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
        name=_name(proposed, relation, words, wrong),
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
    claim = _understandable(claim, proposed.content.strip(), said, written)
    return LocatedClaim(claim, (message, start), (message, start + len(clause))), wrong if act in _WITH_FIELDS else []


def _quoted(numbers: Sequence[int], transcript: Transcript) -> tuple[AuthorMessage, int, str]:
    """The message, and its text from the first unit to the last with its position. Raises `_InvalidClaim`."""
    if not numbers:
        raise _InvalidClaim('"u" must name a number')
    if numbers[0] < 1 or numbers[-1] > len(transcript.numbered_units):
        raise _InvalidClaim(f'"u" must name numbers between 1 and {len(transcript.numbered_units)}')
    places = [transcript.numbered_units[number - 1] for number in numbers]
    said, first, last = places[0].said, places[0].index, places[-1].index
    are_neighbours = [place.index for place in places] == list(range(first, first + len(places)))
    if any(place.said is not said for place in places) or not are_neighbours or len(places) > UNITS_OF_CLAIM_MAX:
        raise _InvalidClaim('"u" must name one number, or a few neighbours in one message')
    start = said.units[first].start
    quote = said.text[start : said.units[last].end]
    if len(quote) > QUOTE_CHARACTERS_MAX:
        raise _InvalidClaim('"u" names too much text for one claim')
    return said, start, quote


def _act(word: str) -> Act:
    try:
        return Act(word.strip().casefold())
    except ValueError:
        raise _InvalidClaim(f'"act" must be one of {", ".join(Act)}') from None


def _one_of(word: str, known: Sequence[str], other: str, name: str, wrong: list[str]) -> str:
    plain = word.strip().casefold()
    if plain in known:
        return plain
    wrong.append(f'"{name}" must be one of those given')
    return other


@dataclass(frozen=True, slots=True)
class _Words:
    """Where names and values stand: in the quote, or, of what the model's own content puts in place of a pronoun, in
    what the author has `written` so far.
    """

    quote: str
    written: str
    content: str

    def typed(self, word: str) -> str:
        """As the author typed it; "" if it stands in neither."""
        return as_typed(word, self.quote) or (as_typed(word, self.written) if as_typed(word, self.content) else "")


def _name(proposed: ProposedClaim, relation: str, words: _Words, wrong: list[str]) -> str:
    """As typed; "" for the author."""
    name = proposed.name.strip()
    if not name or relation == Relation.USER:
        return ""
    typed = words.typed(name)
    if not typed:
        wrong.append('"name" must stand in the sentences that "u" names')
    return typed


def _values(proposed: ProposedClaim, words: _Words, wrong: list[str]) -> tuple[str, ...]:
    given = proposed.values if isinstance(proposed.values, list) else [proposed.values]
    typed = [words.typed(word) for word in (str(value).strip() for value in given[:VALUES_MAX]) if word]
    if not all(typed):
        wrong.append('each of "values" must stand in the sentences that "u" names, as typed')
    return tuple(dict.fromkeys(filter(None, typed)))


def _period(proposed: ProposedClaim, clause: str, quote: str, said_at: float, wrong: list[str]) -> _Bounds:
    """The period in Unix seconds: from the start of the first day to the end of the last one.

    If the model gives no valid date, the date words of the clause are used where they are unambiguous.
    """
    certain = period(clause, said_at)
    words = as_typed(proposed.when, quote)
    try:
        began = _span(proposed.from_.strip(), quote, words, said_at, certain)
        ended = _span(proposed.until.strip(), quote, words, said_at, certain)
        if began and ended and ended[1] <= began[0]:
            raise _UnsupportedDate('"until" must not lie before "from"')
    except _UnsupportedDate as unfounded:
        if certain == (None, None):
            wrong.append(str(unfounded))
        return certain
    if not (began or ended):
        return certain
    return (began[0] if began else None), (ended[1] if ended else None)


def _span(word: str, quote: str, when: str, said_at: float, certain: _Bounds) -> tuple[float, float] | None:
    """Begin and end of the day, month or year; None if none is given. Raises `_UnsupportedDate`."""
    if not word:
        return None
    try:
        numbers = [int(part) for part in word.split("-")]
        year, month, day = [*numbers, 1, 1][:3]
        begin = datetime(year, month, day, tzinfo=UTC)
        span = begin.timestamp(), _end_of(begin, len(numbers)).timestamp()
    except (ValueError, OverflowError):
        raise _UnsupportedDate("a date must read YYYY-MM-DD, YYYY-MM or YYYY") from None
    if len(numbers) > 3 or not _follows(numbers, span, quote, when, said_at, certain):
        raise _UnsupportedDate('a date must follow from words of the sentences, which "when" gives as typed')
    return span


def _end_of(begin: datetime, precision: int) -> datetime:
    if precision == 1:
        return begin.replace(year=begin.year + 1)
    if precision == 2:
        return (begin + timedelta(days=31)).replace(day=1)
    return begin + timedelta(days=1)


def _follows(
    numbers: Sequence[int], span: tuple[float, float], quote: str, when: str, said_at: float, certain: _Bounds
) -> bool:
    """Whether its numbers occur in the quote, or the calendar says so, or the words `when` may mean it: "国庆"."""
    stated = {int(number) for number in _NUMBER.findall(quote)}
    has_year, rest = numbers[0] in stated, set(numbers[1:])
    if rest <= stated and (has_year or (rest and numbers[0] % 100 in stated)):
        return True
    if any(bound is not None for bound in certain):
        return any(bound is not None and span[0] <= bound <= span[1] for bound in certain)
    if _FULL_DATE.search(quote) or not (has_year or when):
        return False
    near = NEAR_DAYS * DAY_SECONDS
    return has_year or (span[0] <= said_at + near and span[1] >= said_at - near)


def _understandable(claim: Claim, content: str, said: AuthorMessage, author: Sequence[str]) -> Claim:
    """The claim in the model's words, if every name, number and content word of them was said; otherwise as it is.

    A whole reply that the model completes takes the question along, marked as the assistant's.
    """
    is_reply = claim.evidence.quote == claim.evidence.words and len(said.units) == 1
    if claim.act is Act.CONFIRM and is_reply and said.question and content and not bare_reply(claim.text):
        claim = replace(claim, act=Act.STATE)  # "Yes, both of them"
    if is_reply and (bare_reply(claim.text) or claim.act not in STORED_ACTS):
        return answered(claim, said.question, said.asked_in, leans=False)
    if not content or claim.act not in STORED_ACTS or len(content) > CONTENT_CHARACTERS_MAX:
        return claim
    has_values = all(as_typed(value, content) for value in claim.values)
    keeps_polarity = is_denied(content) == is_denied(claim.text)
    if has_values and keeps_polarity and adds_nothing(content, author, new_words_max=0.0):
        return replace(claim, text=content)
    if has_values and is_reply and said.question and adds_nothing(content, [*author, said.question], new_words_max=0.0):
        return replace(claim, text=content, question=said.question)
    claim = replace(claim, values=tuple(value for value in claim.values if as_typed(value, claim.evidence.quote)))
    if is_reply and said.question:
        return answered(claim, said.question, said.asked_in, leans=True)
    return replace(claim, leans=claim.act is Act.CORRECT)  # the model says that it cannot be understood alone
