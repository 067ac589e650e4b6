"""Validates a chat model's claims: what they refer to must exist, and what they add must occur in the quote.

The quote is the message text from the first unit to the last, hence verbatim. A claim with invalid units, act or values
is rejected; any other invalid field is dropped. The model is told about both once. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from memory.language import bare_reply, is_denied, names_erasing, stands_alone
from memory.language.calendar_items import holds_time
from memory.language.dates import period
from memory.language.word_boundaries import continues_word, whole_word_positions
from memory.learn.reading.answers import CONFIDENCE, LEVELS, UNITS_OF_CLAIM_MAX, VALUES_MAX, ProposedClaim
from memory.learn.reading.labels import IMPORTANCE, IMPORTANCE_ASKED, type_of
from memory.learn.reading.replies import answered
from memory.learn.reading.transcript import AuthorMessage, Transcript
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
REPLY_CHARACTERS_MAX = 120  # longer replies can be understood without the question
# For other acts the fields are not used, so that they are not worth another call.
_WITH_FIELDS = STORED_ACTS | {Act.FORGET}

_SAYS_SO = frozenset({Act.STATE, Act.REMEMBER, Act.CORRECT})  # acts that affirm or deny something

_Bounds = tuple[float | None, float | None]

_NUMBER = re.compile(r"\d+")
_FULL_DATE = re.compile(r"(?<!\d)(?:\d{4}[-/.年]\d|\d{1,2}[-/.]\d{1,2}[-/.]\d{2})")
_CLAUSES = dict.fromkeys(map(ord, ",;.:!?，；。：！？"), "\n")
_PLAIN_QUOTES = str.maketrans("’‘“”", "''\"\"")


@dataclass(frozen=True, slots=True)
class LocatedClaim:
    """A claim with the numbers of its first and last unit."""

    claim: Claim
    first: int
    last: int


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
    claim that lost a field is replaced only by one of the same units and act; in place of rejected claims, new ones are
    accepted over units that no claim has.
    """
    kept = [*first.sound, *(next((new for new in second.sound if _mends(new, old)), old) for old in first.doubtful)]
    fresh = [
        new
        for new in (*second.sound, *second.doubtful)
        if not any(new.first <= old.last and old.first <= new.last for old in kept)
    ]
    return [*kept, *fresh[: first.refused]]


def _mends(new: LocatedClaim, old: LocatedClaim) -> bool:
    return (new.first, new.last, new.claim.act) == (old.first, old.last, old.claim.act)


def distinct_claims(found: Sequence[LocatedClaim]) -> list[Claim]:
    """In the order said. Of several stored claims over the same units, the most confident, then longest, is kept."""
    kept: list[LocatedClaim] = []
    for one in sorted(found, key=lambda one: (-one.claim.confidence, one.first - one.last)):
        if not any(_holds(other, one) for other in kept):
            kept.append(one)
    return [one.claim for one in sorted(kept, key=lambda one: (one.first, one.last))]


def _holds(other: LocatedClaim, one: LocatedClaim) -> bool:
    is_alike = one.claim.act is other.claim.act or {one.claim.act, other.claim.act} <= STORED_ACTS
    return is_alike and other.first <= one.first and one.last <= other.last


def _read(item: Any) -> ProposedClaim:  # noqa: ANN401 - whatever JSON can hold
    try:
        return msgspec.convert(item, ProposedClaim)
    except msgspec.ValidationError:
        raise _InvalidClaim("a field is missing or has the wrong form") from None


def _placed(proposed: ProposedClaim, transcript: Transcript, made_by: str) -> tuple[LocatedClaim, list[str]]:
    """The claim without invalid fields, and the objections to those."""
    numbers = sorted({proposed.u} if isinstance(proposed.u, int) else set(proposed.u))
    said, quote = _quoted(numbers, transcript)
    act = _act(proposed.act)
    if act is Act.FORGET and not names_erasing(quote):
        raise _InvalidClaim('"forget" needs a sentence that asks for it in so many words')  # deleting cannot be undone
    wrong: list[str] = []
    values = _values(proposed, quote, wrong)
    if wrong and not values and act in _WITH_FIELDS:
        raise _InvalidClaim(wrong[0])  # a weak model names the wrong sentence rather than the wrong words
    relation = _one_of(proposed.about, tuple(Relation), Relation.OTHER, "about", wrong)
    attribute = _one_of(proposed.attr, (NO_ATTRIBUTE, *ATTRIBUTES), NO_ATTRIBUTE, "attr", wrong)
    category = _one_of(proposed.category, CATEGORIES, "fact", "category", wrong)
    category = "correction" if act is Act.CORRECT else category
    holds_from, holds_until = _period(proposed, quote, said.turn.local_at, wrong)
    claim = Claim(
        act=act,
        text=quote,
        evidence=Evidence(quote, said.turn.id),
        scope=said.turn.scope,
        said_at=said.turn.at,
        utc_offset=said.turn.utc_offset,
        relation=Relation(relation),
        name=_name(proposed, relation, quote, wrong),
        attribute=attribute,
        values=values,
        is_affirmed=_is_affirmed(proposed, act, quote, values, wrong),
        holds_from=holds_from,
        holds_until=holds_until,
        memory_type=type_of(act, attribute, category),
        category=category,
        confidence=CONFIDENCE.get(proposed.sure.strip().casefold(), CONFIDENCE[LEVELS[-1]]),
        importance=IMPORTANCE_ASKED if act in EXPLICIT_ACTS else IMPORTANCE[category],
        made_by=made_by,
    )
    return LocatedClaim(_answered(claim, said), numbers[0], numbers[-1]), wrong if act in _WITH_FIELDS else []


def _quoted(numbers: Sequence[int], transcript: Transcript) -> tuple[AuthorMessage, str]:
    """The message and its text from the first unit to the last. Raises `_InvalidClaim`."""
    if not numbers:
        raise _InvalidClaim('"u" must name a number')
    if numbers[0] < 1 or numbers[-1] > len(transcript.numbered_units):
        raise _InvalidClaim(f'"u" must name numbers between 1 and {len(transcript.numbered_units)}')
    places = [transcript.numbered_units[number - 1] for number in numbers]
    said, first, last = places[0].said, places[0].index, places[-1].index
    are_neighbours = [place.index for place in places] == list(range(first, first + len(places)))
    if any(place.said is not said for place in places) or not are_neighbours or len(places) > UNITS_OF_CLAIM_MAX:
        raise _InvalidClaim('"u" must name one number, or a few neighbours in one message')
    quote = said.text[said.units[first].start : said.units[last].end]
    if len(quote) > QUOTE_CHARACTERS_MAX:
        raise _InvalidClaim('"u" names too much text for one claim')
    return said, quote


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


def _name(proposed: ProposedClaim, relation: str, quote: str, wrong: list[str]) -> str:
    """As typed; "" for the author."""
    name = proposed.name.strip()
    if not name or relation == Relation.USER:
        return ""
    typed = as_typed(name, quote)
    if not typed:
        wrong.append('"name" must stand in the sentences that "u" names')
    return typed


def _values(proposed: ProposedClaim, quote: str, wrong: list[str]) -> tuple[str, ...]:
    given = proposed.values if isinstance(proposed.values, list) else [proposed.values]
    words = [word for word in (str(value).strip() for value in given[:VALUES_MAX]) if word]
    found = dict.fromkeys(typed for word in words if (typed := as_typed(word, quote)))
    if any(not as_typed(word, quote) for word in words):
        wrong.append('each of "values" must stand in the sentences that "u" names, as typed')
    return tuple(found)


def _is_affirmed(proposed: ProposedClaim, act: Act, quote: str, values: Sequence[str], wrong: list[str]) -> bool:
    """Derived from the quote's own words. A denial next to the values ("not Leeds any more, York") does not count.

    Bare replies are handled together with their question.
    """
    if act not in _SAYS_SO or bare_reply(quote):
        return not proposed.no
    parts = [
        part for part in quote.translate(_CLAUSES).split("\n") if any(whole_word_positions(one, part) for one in values)
    ]
    denies = is_denied(quote)
    contradicts = not denies if proposed.no else denies and all(map(is_denied, parts))
    if contradicts:
        wrong.append('"no" must be true where the sentences that "u" names deny it, and only there')
    return proposed.no is contradicts


def as_typed(words: str, quote: str) -> str:
    """The part of the quote that equals `words`, ignoring case, width and white space; "" if there is none.

    Matches whole words and numbers: "5" does not match "15", nor "Al" "really".
    """
    sought = "".join(_folded(character) for character in words)
    letters = [(_folded(character), index) for index, character in enumerate(quote)]
    text = "".join(folded for folded, _ in letters)
    places = [index for folded, index in letters for _ in folded]
    at = text.find(sought) if sought else -1
    while at >= 0:
        first, last = places[at], places[at + len(sought) - 1]
        if not (continues_word(quote, first, -1) or continues_word(quote, last, 1)):
            return quote[first : last + 1]
        at = text.find(sought, at + 1)
    return ""


def _folded(character: str) -> str:
    return "".join(unicodedata.normalize("NFKC", character.translate(_PLAIN_QUOTES)).casefold().split())


def _period(proposed: ProposedClaim, quote: str, said_at: float, wrong: list[str]) -> _Bounds:
    """The period in Unix seconds: from the start of the first day to the end of the last one.

    If the model gives no valid date, the date words of the quote are used where they are unambiguous.
    """
    certain = period(quote, said_at)
    try:
        began = _span(proposed.from_.strip(), quote, said_at, certain)
        ended = _span(proposed.until.strip(), quote, said_at, certain)
        if began and ended and ended[1] <= began[0]:
            raise _UnsupportedDate('"until" must not lie before "from"')
    except _UnsupportedDate as unfounded:
        if certain == (None, None):
            wrong.append(str(unfounded))
        return certain
    if not (began or ended):
        return certain
    return (began[0] if began else None), (ended[1] if ended else None)


def _span(word: str, quote: str, said_at: float, certain: _Bounds) -> tuple[float, float] | None:
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
    if len(numbers) > 3 or not _follows(numbers, span, quote, said_at, certain):
        raise _UnsupportedDate("a date must follow from the sentences and the day of the chat")
    return span


def _end_of(begin: datetime, precision: int) -> datetime:
    if precision == 1:
        return begin.replace(year=begin.year + 1)
    if precision == 2:
        return (begin + timedelta(days=31)).replace(day=1)
    return begin + timedelta(days=1)


def _follows(numbers: Sequence[int], span: tuple[float, float], quote: str, said_at: float, certain: _Bounds) -> bool:
    """Whether its numbers occur in the quote, or its words mean the date, or can mean it: "last spring"."""
    stated = {int(number) for number in _NUMBER.findall(quote)}
    has_year, rest = numbers[0] in stated, set(numbers[1:])
    if rest <= stated and (has_year or (rest and numbers[0] % 100 in stated)):
        return True
    if any(bound is not None for bound in certain):
        return any(bound is not None and span[0] <= bound <= span[1] for bound in certain)
    if _FULL_DATE.search(quote) or not (has_year or holds_time(quote)):
        return False
    near = NEAR_DAYS * DAY_SECONDS
    return has_year or (span[0] <= said_at + near and span[1] >= said_at - near)


def _answered(claim: Claim, said: AuthorMessage) -> Claim:
    is_whole = [unit.text for unit in said.units] == [claim.text] and len(claim.text) <= REPLY_CHARACTERS_MAX
    leans = not stands_alone(claim.text) and len(claim.text) <= len(said.question)
    return answered(claim, said.question, said.asked_in, leans=leans) if is_whole else claim


__all__ = ["CheckedAnswer", "LocatedClaim", "as_typed", "check_answer", "distinct_claims", "merge_second_answer"]
