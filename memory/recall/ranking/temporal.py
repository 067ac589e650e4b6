"""Time expressions in a question: "in May 2023", "last week", "before October", "上周". Calendar arithmetic in UTC.

Reads English, Chinese, German and Spanish. An ordinary word must never become a time ("may I", "march on"): a month
name that is also a word needs a day, a year or a preposition next to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memory.language import calendar
from memory.recall.ranking.lexical import fold

DAY = 86_400.0
YEARS_BACK = 8  # a month without a year may mean any of these years
SPANS_MAX = 24  # per question
COUNT_IN_WORDS_MAX = 10  # "ten weeks ago"; larger numbers are written in digits


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, `[start, end)` in Unix seconds; either end may be infinite."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class TimeQuestion:
    """What a question says about time."""

    spans: tuple[Span, ...] = ()
    asks_when: bool = False
    asks_about_past: bool = False  # asks about an earlier state, so that superseded memories may be returned


_ENGLISH, _GERMAN, _SPANISH, _CHINESE = (calendar(language) for language in ("en", "de", "es", "zh"))
# Short names in English only: Spanish ones ("ago", "set") are words elsewhere.
_MONTHS = {
    fold(name): number
    for months in (_ENGLISH.months, _ENGLISH.short_months, _GERMAN.months, _SPANISH.months)
    for number, names in enumerate(months, start=1)
    for name in names
}
# Month names that are also words or given names in some language.
_WORDY_MONTHS = frozenset(_ENGLISH.wordy_months + _GERMAN.wordy_months)
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_LATIN_DATE = re.compile(
    rf"(?:(?P<near>in|on|by|since|before|after|until|during|of|im|am|seit|vor|nach|bis|en|de|desde|antes de"
    rf"|hasta|el)\s+)?"
    rf"(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th|\.)?(?:\s+(?:of|de))?\s+)?\b(?P<month>{_MONTH})\b\.?"
    rf"(?:\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?,?\s*(?:(?:of|de|del)\s+)?(?P<year>(?:19|20)\d\d\b)?"
)
_ISO_DATE = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d{2})(?:-(?P<day>\d{2}))?\b")
_CHINESE_DATE = re.compile(
    r"(?:(?P<year>(?:19|20)\d\d|去|今|前)年)?(?P<month>\d{1,2}|十[一二]?|[一二三四五六七八九])月(?:份)?(?:(?P<day>\d{1,2})[日号])?"
)
_NAMES_A_DATE = re.compile(rf"\d|月|\b(?:{_MONTH})\b")  # a quick test: without a match the text holds no date
_YEAR = re.compile(
    r"\b(?:in|during|since|before|after|until|by|im jahr|seit|vor|en|desde|of)\s+(?P<year>(?:19|20)\d\d)\b"
    r"|(?P<zh>(?:19|20)\d\d)年(?!\d)"
)
_NUMBERS = {**_ENGLISH.numbers, **_CHINESE.numbers, "十一": 11, "十二": 12}
_ENGLISH_COUNT = "|".join(word for word, number in _ENGLISH.numbers.items() if number <= COUNT_IN_WORDS_MAX)

# (pattern, unit, how many units back the span begins, its length in units)
_RELATIVE = tuple(
    (re.compile("|".join(patterns)), unit, back, length)
    for patterns, unit, back, length in (
        ((r"\byesterday\b", r"\bgestern\b", r"\bayer\b", "昨[天晚日]"), "day", 1, 1),
        (("前天", r"\bvorgestern\b", r"\banteayer\b"), "day", 2, 1),
        ((r"\btoday\b", r"\btonight\b", r"\bheute\b", r"\bhoy\b", "今[天晚日]"), "day", 0, 1),
        ((r"\blast week(?!end)", r"\b(?:letzte|vorige) woche", r"\bla semana pasada"), "week", 1, 1),
        (("上个?(?:周|星期|礼拜)(?!末)",), "week", 1, 1),
        ((r"\blast weekend", r"\bletztes wochenende", r"\bfin de semana pasado", "上个?周末"), "week", 1, 1),
        ((r"\bthis week(?!end)", r"\bdiese woche", r"\besta semana", "[这本]个?(?:周|星期)"), "week", 0, 1),
        ((r"\blast month", r"\bletzten monat", r"\bel mes pasado", "上个?月"), "month", 1, 1),
        ((r"\bthis month", r"\bdiesen monat", r"\beste mes", "[这本]个?月"), "month", 0, 1),
        ((r"\blast year", r"\bletztes jahr", r"\bel ano pasado", "去年"), "year", 1, 1),
        ((r"\bthis year", r"\bdieses jahr", r"\beste ano", "今年"), "year", 0, 1),
    )
)
_ANY_RELATIVE = re.compile("|".join(pattern.pattern for pattern, *_ in _RELATIVE))
_AGO = re.compile(
    rf"\b(?P<en>\d{{1,3}}|{_ENGLISH_COUNT}) (?P<unit>day|week|month|year)s? ago\b"
    r"|\bvor (?P<de>\d{1,3}) (?P<unit_de>tag|woche|monat|jahr)[ensr]*\b"
    r"|\bhace (?P<es>\d{1,3}) (?P<unit_es>dia|semana|mes|ano)[es]*\b"
    r"|(?P<zh>\d{1,3}|[一二两三四五六七八九十])(?:个?(?P<unit_zh>天|周|星期|年)|个(?P<unit_zh_month>月))(?:以|之)?前"
)
_UNITS = {
    fold(name).removeprefix("个"): unit
    for one in (_GERMAN, _SPANISH, _CHINESE)
    for unit, names in one.units.items()
    for name in names
}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_WHEN = re.compile(
    r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bwhich (?:day|month|year|week)\b|\bhow long\b|\bsince when\b"
    r"|\bwann\b|\bwie lange\b|\bcuando\b|\bque (?:dia|fecha|mes|ano)\b"
    r"|什么时候|何时|哪[天年]|哪个?月|几[月号点]|多久|多长时间|日期"
)
_PAST = re.compile(
    r"\bused to\b|\bprevious(?:ly)?\b|\bformer(?:ly)?\b|\bback then\b|\bat (?:the|that) time\b|\boriginally\b"
    r"|\bin the past\b|\bno longer\b|\bfruher\w*\b|\bdamals\b|\behemalig\w*\b|\bvorherig\w*\b"
    r"|\bantiguamente\b|\banterior(?:mente)?\b|\bsolia\b|以前|从前|原来的?|原先|曾经|过去|当时|那时|之前的"
)
_BEFORE = re.compile(r"(?:\bbefore|\bprior to|\bvor(?: dem)?|\bantes de)\s*(?:the\s+|de\s+)?$")
_SINCE = re.compile(r"(?:\bsince|\bafter|\bseit|\bnach|\bdesde|\bdespues de)\s*$")
_BEFORE_AFTERWARDS = re.compile(r"^份?(?:以前|之前|前)")


def time_question(folded: str, *, now: float) -> TimeQuestion:
    """The time expressions of a question in the form of `lexical.fold`. `now`: Unix seconds."""
    spans: list[Span] = []
    asks_about_past = bool(_PAST.search(folded))
    for span, is_before in _spans(folded, now):
        asks_about_past = asks_about_past or is_before
        spans.append(span)
        if len(spans) == SPANS_MAX:
            break
    return TimeQuestion(tuple(spans), bool(_WHEN.search(folded)), asks_about_past)


def _spans(folded: str, now: float) -> Iterator[tuple[Span, bool]]:
    taken: list[tuple[int, int]] = []
    for start, end, found in _dates(folded, now):
        if any(start < b and a < end for a, b in taken):
            continue
        taken.append((start, end))
        head, tail = folded[:start], folded[end:]
        is_before = bool(_BEFORE.search(head) or _BEFORE_AFTERWARDS.search(tail))
        if is_before:
            last = max((span for span in found if span.start <= now), key=lambda span: span.start, default=found[0])
            yield Span(-math.inf, last.start), True
        elif _SINCE.search(head):
            last = max((span for span in found if span.start <= now), key=lambda span: span.start, default=found[0])
            yield Span(last.start, math.inf), False
        else:
            yield from ((span, False) for span in found)
    if taken:  # "last week, as told on 6 November" is relative to that date, whose span suffices
        return
    for pattern, unit, back, length in _RELATIVE if _ANY_RELATIVE.search(folded) else ():
        if pattern.search(folded):
            yield _relative(now, unit, back, length), False
    for match in _AGO.finditer(folded):
        groups = {name: value for name, value in match.groupdict().items() if value}
        unit = next(_UNITS.get(value, value) for name, value in groups.items() if name.startswith("unit"))
        count = next(_number(value) for name, value in groups.items() if not name.startswith("unit"))
        middle, half = now - count * _UNIT_DAYS[unit] * DAY, _UNIT_DAYS[unit] * DAY / 2
        yield Span(middle - half, middle + half), False


def _dates(folded: str, now: float) -> Iterator[tuple[int, int, tuple[Span, ...]]]:
    """Dates with their position. A month without a year stands for that month of several years."""
    if not _NAMES_A_DATE.search(folded):
        return
    for match in _ISO_DATE.finditer(folded):
        yield match.start(), match.end(), _months(int(match["month"]), int(match["year"]), _int(match["day"]), now)
    for match in _LATIN_DATE.finditer(folded):
        day = _int(match["before"]) or _int(match["after"])
        if match["month"] in _WORDY_MONTHS and not (day or match["year"] or match["near"]):
            continue
        start = match.end("near") if match["near"] else match.start()
        yield start, match.end(), _months(_MONTHS[match["month"]], _int(match["year"]), day, now)
    for match in _CHINESE_DATE.finditer(folded):
        year = match["year"]
        relative = {"去": -1, "今": 0, "前": -2}.get(year or "")
        number = _year_of(now) + relative if relative is not None else _int(year)
        yield match.start(), match.end(), _months(_number(match["month"]), number, _int(match["day"]), now)
    for match in _YEAR.finditer(folded):
        name = "year" if match["year"] else "zh"
        year = int(match[name])
        yield match.start(name), match.end(), (Span(_stamp(year, 1, 1), _stamp(year + 1, 1, 1)),)


def _months(month: int, year: int | None, day: int | None, now: float) -> tuple[Span, ...]:
    if not 1 <= month <= 12:
        return (Span(math.inf, math.inf),)
    years = (year,) if year else range(_year_of(now) - YEARS_BACK, _year_of(now) + 2)
    return tuple(_month(y, month, day) for y in years)


def _month(year: int, month: int, day: int | None) -> Span:
    if day and 1 <= day <= 28 + (month != 2) * 2:
        start = _stamp(year, month, day)
        return Span(start, start + DAY)
    return Span(_stamp(year, month, 1), _stamp(year + month // 12, month % 12 + 1, 1))


def _relative(now: float, unit: str, back: int, length: int) -> Span:
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "year":
        return Span(_stamp(today.year - back, 1, 1), _stamp(today.year - back + length, 1, 1))
    if unit == "month":
        year, month = divmod(today.year * 12 + today.month - 1 - back, 12)
        return _month(year, month + 1, None)
    first = today - timedelta(days=back if unit == "day" else today.weekday() + 7 * back)
    return Span(first.timestamp(), (first + timedelta(days=length * _UNIT_DAYS[unit])).timestamp())


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS.get(word, 1)


def _int(digits: str | None) -> int | None:
    return int(digits) if digits and digits.isdigit() else None


def _year_of(now: float) -> int:
    return datetime.fromtimestamp(now, UTC).year


def _stamp(year: int, month: int, day: int) -> float:
    return datetime(year, month, day, tzinfo=UTC).timestamp()
