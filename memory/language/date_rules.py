"""Recognises dates in sequences of calendar items, with all days that each may mean; the choice is made elsewhere.

The rules are a table: a sequence of kinds, one letter each, is the key ("nmy" matches 14 March 2025).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from memory.language.calendar_items import CalendarItem, ItemKind

ROW_MAX = 6  # items of the longest rule
YEARS_BACK, YEARS_AHEAD = 8, 1  # a date without a year may be in any of these years
AMOUNT_YEARS_MAX = 100

DAY = timedelta(days=1)
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True, order=True)
class Days:
    """From the first day to the day after the last."""

    begin: date
    end: date


@dataclass(frozen=True, slots=True)
class Dated:
    start: int  # of `items[start:end]`
    end: int
    options: tuple[Days, ...]  # the days that it may mean, in order: several if year or week are open
    is_plain: bool = True  # a date even without a mark next to it
    is_weekday: bool = False  # nothing else
    is_range: bool = False  # has both ends


Options = tuple[Days, ...]
"""() for a date that is not certain."""


def dates_of(items: Sequence[CalendarItem], said: date) -> list[Dated]:
    """In order, without overlap. `said`: the day on which the statement was made."""
    found: list[Dated] = []
    start = 0
    while start < len(items):
        dated = _dated_at(items, start, said) if items[start].kind in _FIRST_KINDS else None
        if dated is not None:
            found.append(dated)
        start = dated.end if dated is not None else start + 1
    return found


def _dated_at(items: Sequence[CalendarItem], start: int, said: date) -> Dated | None:
    """The longest date that starts there."""
    for length in range(min(ROW_MAX, len(items) - start), 0, -1):
        row = items[start : start + length]
        name = "".join(item.kind for item in row)
        rule = _RULES.get(name)
        options = rule(row, said) if rule is not None else None
        if options is not None:
            is_plain = _is_plain(name, row)
            return Dated(start, start + length, options, is_plain, is_weekday=name == "d", is_range=name in _RANGES)
    return None


def _is_plain(name: str, row: Sequence[CalendarItem]) -> bool:
    """Whether it can hardly be an ordinary word or number."""
    first = row[0]
    match name:
        case "m" | "y":
            return first.is_plain
        case "i":
            return first.is_plain or first.is_joined
        case "d":
            return first.name != "short"
        case "nm" | "mn":
            month = _of(ItemKind.MONTH_NAME, row)
            return month.name != "word" or month.is_capital or row[1].is_joined or first.is_joined
    return True


def _of(kind: ItemKind, row: Sequence[CalendarItem]) -> CalendarItem:
    return next(item for item in row if item.kind is kind)


def _numeric(row: Sequence[CalendarItem], said: date) -> Options | None:
    year, month, day = row[0].day
    return _days(said, month, day=day, year=year)


def _alone(row: Sequence[CalendarItem], said: date) -> Options | None:
    number = row[0].number
    match row[0].kind:
        case ItemKind.DAY:
            return (_one(said + DAY * number),)
        case ItemKind.WEEK:
            monday = _monday(said) + WEEK * number
            return (Days(monday, monday + WEEK),)
        case ItemKind.MONTH:
            return (_month(said.year, said.month + number),)
        case ItemKind.YEAR:
            return (_year(said.year + number),)
    return (_year(number),)


def _month_of_year(row: Sequence[CalendarItem], said: date) -> Options:
    """With or without a day; the year in digits, relative, or open."""
    numbers = {item.kind: item.number for item in row}
    year = numbers.get(ItemKind.YEAR_NUMBER, 0)
    if ItemKind.YEAR in numbers:
        year = said.year + numbers[ItemKind.YEAR]
    return _days(said, numbers[ItemKind.MONTH_NAME], day=numbers.get(ItemKind.NUMBER, 0), year=year)


def _day_behind_month(row: Sequence[CalendarItem], said: date) -> Options | None:
    return _month_of_year(row, said) if _of(ItemKind.NUMBER, row).is_plain else None


def _which_month(row: Sequence[CalendarItem], said: date) -> Options | None:
    """ "Next" and "last" only if both common interpretations agree."""
    month, which = _of(ItemKind.MONTH_NAME, row).number, _of(ItemKind.WHICH, row).name
    coming, latest = said.year + (month <= said.month), said.year - (month >= said.month)
    years = {
        "this": said.year if abs(month - said.month) <= 6 else None,
        "next": coming if coming > said.year else None,
        "last": latest if latest < said.year else None,
        "coming": coming,
        "latest": latest,
    }
    year = years[which]
    return () if year is None else (_month(year, month),)


def _which_weekday(row: Sequence[CalendarItem], said: date) -> Options | None:
    """ "This" means this calendar week and not the past; "next" and "last" only if both interpretations agree."""
    weekday, which = _of(ItemKind.WEEKDAY, row).number, _of(ItemKind.WHICH, row).name
    latest, coming = _around(weekday, said)
    here = _monday(said) + DAY * weekday
    days = {
        "this": here if here >= said else None,
        "next": coming if coming == here + WEEK else None,
        "last": latest if latest == here - WEEK else None,
        "coming": coming,
        "latest": latest,
    }
    day = days[which]
    return () if day is None else (_one(day),)


def _weekday_of_week(row: Sequence[CalendarItem], said: date) -> Options | None:
    return (_one(_monday(said) + WEEK * _of(ItemKind.WEEK, row).number + DAY * _of(ItemKind.WEEKDAY, row).number),)


def _weekday(row: Sequence[CalendarItem], said: date) -> Options | None:
    """The previous and the next one; none if the statement was made on that weekday."""
    weekday = row[0].number
    return () if weekday == said.weekday() else tuple(_one(day) for day in _around(weekday, said))


def _day_of_month(row: Sequence[CalendarItem], said: date) -> Options | None:
    """ "The 3rd of next month"; not "I bought 3 last month"."""
    day, month = _of(ItemKind.NUMBER, row), _of(ItemKind.MONTH, row)
    if not month.is_joined and day.name != "signed":
        return None
    first = _month(said.year, said.month + month.number).begin
    return _days(said, first.month, day=day.number, year=first.year)


def _amount(row: Sequence[CalendarItem], said: date) -> Options | None:
    """ "Two weeks ago", "in 3 months": a day for days and weeks, otherwise the whole month or year."""
    mark, unit = _of(ItemKind.MARK, row), _of(ItemKind.UNIT, row).name
    number = next(item for item in row if item.kind in (ItemKind.NUMBER, ItemKind.COUNT))
    labels = mark.before if row[0] is mark else mark.behind
    sign = 1 if "ahead" in labels else -1 if labels & {"ago", "since"} else 0
    if not sign or not number.number or number.name == "ordinal" or number.is_joined:
        return None
    amount = sign * number.number
    match unit:
        case "day" | "week":
            return (_one(said + (DAY if unit == "day" else WEEK) * amount),)
        case "month":
            return (_month(said.year, said.month + amount),)
        case _:
            return (_year(said.year + amount),) if abs(amount) <= AMOUNT_YEARS_MAX else None


def _day_range(row: Sequence[CalendarItem], said: date) -> Options | None:
    """ "3 to 10 May", 3月3号到10号: both days and those between."""
    mark = _of(ItemKind.MARK, row)
    first, last = (item for item in row if item.kind is ItemKind.NUMBER)
    behind_month = row[row.index(_of(ItemKind.MONTH_NAME, row)) :]
    is_fitting = all(item.is_plain for item in behind_month if item.kind is ItemKind.NUMBER)
    if not is_fitting or not mark.before & {"range", "until"} or not 0 < first.number < last.number:
        return None
    ends = _month_of_year(row, said)  # of two numbers, it uses the last
    return tuple(replace(days, begin=days.begin - DAY * (last.number - first.number)) for days in ends)


_RANGES = ("npnm", "npnmy", "npnm,y", "npnmY", "mnpn", "mnpny", "mnpn,y", "ymnpn", "Ymnpn")
_RULES: dict[str, Callable[[Sequence[CalendarItem], date], Options | None]] = {
    "i": _numeric,
    **dict.fromkeys(("D", "W", "M", "Y", "y"), _alone),
    **dict.fromkeys(("m", "my", "ym", "mY", "Ym", "mpY", "Ypm"), _month_of_year),
    **dict.fromkeys(("nm", "nmy", "nm,y", "nmY", "Ynm", "Ypnm"), _month_of_year),
    **dict.fromkeys(("mn", "mny", "mn,y", "ymn", "Ymn"), _day_behind_month),
    **dict.fromkeys(_RANGES, _day_range),
    **dict.fromkeys(("wm", "mw"), _which_month),
    **dict.fromkeys(("wd", "dw"), _which_weekday),
    **dict.fromkeys(("Wd", "Wpd", "dW", "dpW"), _weekday_of_week),
    "d": _weekday,
    **dict.fromkeys(("nM", "Mn"), _day_of_month),
    **dict.fromkeys(("pnu", "pcu", "nup", "cup"), _amount),
}
_FIRST_KINDS = frozenset(name[0] for name in _RULES)  # most words begin no date


def _days(said: date, month: int, *, day: int, year: int) -> Options:
    """The day, or the whole month; if the year is open, in each of the years around. () if there is no such day."""
    years = (year,) if year else range(said.year - YEARS_BACK, said.year + YEARS_AHEAD + 1)
    found = []
    for one in years:
        whole = _month(one, month)
        if day == 0:
            found.append(whole)
        elif day <= (whole.end - whole.begin).days:
            found.append(_one(whole.begin + DAY * (day - 1)))
    return tuple(found)


def _one(day: date) -> Days:
    return Days(day, day + DAY)


def _month(year: int, month: int) -> Days:
    """`month` may be outside 1..12."""
    return Days(_first_of(year * 12 + month - 1), _first_of(year * 12 + month))


def _first_of(months: int) -> date:
    return date(months // 12, months % 12 + 1, 1)


def _year(year: int) -> Days:
    return Days(date(year, 1, 1), date(year + 1, 1, 1))


def _monday(day: date) -> date:
    return day - DAY * day.weekday()


def _around(weekday: int, said: date) -> tuple[date, date]:
    """The last such weekday before that day, and the first one after it."""
    back, ahead = (said.weekday() - weekday - 1) % 7 + 1, (weekday - said.weekday() - 1) % 7 + 1
    return said - DAY * back, said + DAY * ahead
