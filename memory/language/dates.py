"""The period in which a statement holds, according to its own date words; and the dates that a question names.

Only unambiguous dates count: "next Friday" said on a Monday may mean two days, so it is ignored, as are a bare "on
Friday" and recurring dates. A day or month without a year is the one nearest to when it was said. Days are in UTC:
around midnight they may be off by one for users far from it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from memory.language.calendar_items import OTHER, CalendarItem, ItemKind, calendar_items
from memory.language.date_rules import DAY, Dated, Days, dates_of
from memory.language.phrases import candidates

CHARACTERS_MAX = 2_000  # of a text searched for dates
YEARS_AROUND = 1  # a statement without a year is about the previous, the same or the next one

_UNCERTAIN = "uncertain"
_DIRECTIONS = ("since", "onwards", "until", "before", "after")
_RELATIVE_KINDS = (ItemKind.DAY, ItemKind.WEEK, ItemKind.MONTH, ItemKind.YEAR, ItemKind.WHICH, ItemKind.WEEKDAY)
_AHEAD = frozenset(_DIRECTIONS) - {"since"}
_BESIDE_DATES = frozenset({"at", "ahead"})  # marks that may stand between a weekday and its date

Period = tuple[float | None, float | None]
_DatePeriod = tuple[date | None, date | None]


@dataclass(frozen=True, slots=True)
class MarkedDate:
    dated: Dated
    mark: str  # a direction, "range" directly after another date, "at", or "" for none or an uncertain one
    is_relative: bool = False  # only to the day on which it was said
    unit: str = ""  # of an amount ("two weeks ago"), else ""


def period(text: str, said_at: float, *, with_end: bool = False) -> Period:
    """`(holds_from, holds_until)` in Unix seconds, as `said_at`, at midnight UTC; None if open or uncertain.

    The end of "until January" is the first second of February. What begins on a day may go on: its end is given only
    `with_end`, unless the words say since when. Dates outside the calendar's range are ignored.
    """
    text = text[:CHARACTERS_MAX]
    try:
        said = datetime.fromtimestamp(said_at, UTC).date()
        found = {_period(calendar_items(text, language), said, with_end=with_end) for language in candidates(text)}
        found.discard((None, None))
    except (OSError, OverflowError, ValueError):  # a day before year 1 or after year 9999
        return None, None
    if len(found) != 1:
        return None, None
    holds_from, holds_until = (None if day is None else midnight(day) for day in found.pop())
    return holds_from, holds_until


def dates_asked_for(text: str, asked_at: float) -> list[MarkedDate]:
    """The dates in a question, with all days that each may mean; no weekday alone. `asked_at`: Unix seconds."""
    text = text[:CHARACTERS_MAX]
    try:
        asked_on = datetime.fromtimestamp(asked_at, UTC).date()
        return [one for language in candidates(text) for one in _asked_for(calendar_items(text, language), asked_on)]
    except (OSError, OverflowError, ValueError):  # a day before year 1 or after year 9999
        return []


def _asked_for(items: Sequence[CalendarItem], asked_on: date) -> Iterator[MarkedDate]:
    """A question asks for a month that is no other word, whatever stands before it; of weekdays beside it no more."""
    dates = [replace(one, is_plain=one.is_plain or _is_month(items, one)) for one in dates_of(items, asked_on)]
    for marked in _marked(items, dates):
        row = items[marked.dated.start : marked.dated.end]
        unit = next((item.name for item in row if item.kind is ItemKind.UNIT), "")
        is_relative = bool(unit) or all(item.kind in _RELATIVE_KINDS for item in row)
        if not marked.dated.is_weekday:
            yield replace(marked, is_relative=is_relative, unit=unit)


def _is_month(items: Sequence[CalendarItem], dated: Dated) -> bool:
    first = items[dated.start]
    is_meant = first.name != "word" or first.is_joined
    return dated.end == dated.start + 1 and first.kind is ItemKind.MONTH_NAME and is_meant


def _period(items: Sequence[CalendarItem], said: date, *, with_end: bool) -> _DatePeriod:
    if any(item.kind is ItemKind.EVERY for item in items):
        return None, None
    marked = _marked(items, _with_weekdays(items, [_of_years_around(one, said) for one in dates_of(items, said)]))
    if len(marked) == 2 and _is_pair(*marked):
        return _from_to(marked[0].dated, _resolved(marked[1], said))
    meant = {_meant(one, _resolved(one, said), with_end=with_end) for one in marked}
    return meant.pop() if len(meant) == 1 else (None, None)


def _of_years_around(dated: Dated, said: date) -> Dated:
    """Where the year is open."""
    if len(dated.options) == 1:
        return dated
    near = (days for days in dated.options if abs(days.begin.year - said.year) <= YEARS_AROUND)
    return replace(dated, options=tuple(near))


def _with_weekdays(items: Sequence[CalendarItem], dates: Sequence[Dated]) -> list[Dated]:
    """A weekday next to a date belongs to it ("Friday, 14 March") and determines the year."""
    found: list[Dated] = []
    for dated in dates:
        previous = found[-1] if found else None
        if previous is None or previous.is_weekday == dated.is_weekday or not _is_beside(items, previous, dated):
            found.append(dated)
            continue
        weekday, other = (previous, dated) if previous.is_weekday else (dated, previous)
        number = items[weekday.start].number
        whole = (days for days in other.options if days.end - days.begin == DAY)
        options = tuple(days for days in whole if days.begin.weekday() == number)
        found[-1] = replace(dated, start=previous.start, options=options, is_plain=True, is_weekday=False)
    return found


def _is_beside(items: Sequence[CalendarItem], first: Dated, second: Dated) -> bool:
    between = items[first.end : second.start]
    return all(
        item.kind is ItemKind.COMMA or (item.kind is ItemKind.MARK and item.before and item.before <= _BESIDE_DATES)
        for item in between
    )


def _marked(items: Sequence[CalendarItem], dates: Sequence[Dated]) -> list[MarkedDate]:
    found: list[MarkedDate] = []
    previous_end = -1
    for dated in dates:
        mark = _mark(items, dated, previous_end)
        if mark or dated.is_plain:
            found.append(MarkedDate(dated, mark))
            previous_end = dated.end
    return found


def _mark(items: Sequence[CalendarItem], dated: Dated, previous_end: int) -> str:
    before = items[dated.start - 1] if dated.start > 0 else OTHER
    earlier = items[dated.start - 2] if dated.start > 1 else OTHER
    behind = items[dated.end] if dated.end < len(items) else OTHER
    is_second = bool(before.before & {"or", "range", "until"}) and previous_end < dated.start - 1
    is_one_of_two = is_second and earlier.kind in (ItemKind.NUMBER, ItemKind.COUNT)
    is_vague = before.kind is ItemKind.VAGUE or (earlier.kind is ItemKind.VAGUE and bool(before.before))
    if is_one_of_two or is_vague or "or" in behind.behind:
        return _UNCERTAIN
    directions = [label for side in (behind.behind, before.before) for label in _DIRECTIONS if label in side]
    if directions:
        return directions[0]
    if "range" in before.before and previous_end == dated.start - 1:
        return "range"
    return "at" if before.before else ""


def _is_pair(first: MarkedDate, second: MarkedDate) -> bool:
    """ "From 3 May until 10 May", "3 May to 10 May"."""
    is_next = first.mark in ("", "at") and first.dated.end == second.dated.start - 1
    is_begin = is_next or first.mark in ("since", "onwards")
    return is_begin and second.mark in ("until", "range") and not first.dated.is_weekday


def _from_to(first: Dated, last: Days | None) -> _DatePeriod:
    begins = [days.begin for days in first.options if last is not None and days.begin < last.end]
    return (max(begins), last.end) if begins and last is not None else (None, None)


def _resolved(marked: MarkedDate, said: date) -> Days | None:
    """The option that is meant; None if uncertain."""
    options = marked.dated.options
    if marked.mark == _UNCERTAIN or not options:
        return None
    if marked.dated.is_weekday:
        return options[0] if marked.mark == "since" else options[-1] if marked.mark in _AHEAD else None
    if len(options) > 1 and marked.mark == "since":
        return max((days for days in options if days.begin <= said), default=None)
    nearest = sorted((_distance(days, said), days) for days in options)
    is_tie = len(nearest) > 1 and nearest[0][0] == nearest[1][0]
    return None if is_tie else nearest[0][1]


def _meant(marked: MarkedDate, days: Days | None, *, with_end: bool) -> _DatePeriod:
    if days is None:
        return None, None
    match marked.mark:
        case "until" if not marked.dated.is_range:
            return None, days.end
        case "before":
            return None, days.begin
        case "after":
            return days.end, None
        case mark if marked.dated.is_range or (with_end and mark not in _DIRECTIONS):
            return days.begin, days.end
        case _:
            return days.begin, None


def _distance(days: Days, said: date) -> timedelta:
    if days.begin <= said < days.end:
        return timedelta(0)
    return days.begin - said if said < days.begin else said - days.end + DAY


def midnight(day: date) -> float:
    """Its begin in UTC, in Unix seconds."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
