"""Parses a text into calendar items: months, weekdays, numbers, marks such as "until". Dates are resolved elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import chain

from memory.language.loader import Calendar, Language, calendar, words
from memory.language.phrases import PhraseMatch, PhraseTable, TokenizedText, tokenize

YEARS = range(1900, 2100)
_ORDINAL_ENDINGS = ("st", "nd", "rd", "th")
_COMMAS = (",", "、", "،")
_DIGITS_MAX = 4
_YEAR_DIGITS = 4
_LAST_CENTURY = 69  # from here on, two digits mean 19.. instead of 20.., as in POSIX
_MONTHS = 12
_DAYS_MAX = 31


class ItemKind(StrEnum):
    """One letter each, so that a sequence of items spells the key of a rule."""

    DAY = "D"  # relative: tomorrow
    WEEK = "W"
    MONTH = "M"
    YEAR = "Y"
    MONTH_NAME = "m"
    WEEKDAY = "d"
    NUMBER = "n"  # in digits, or an ordinal
    COUNT = "c"  # a number in words
    YEAR_NUMBER = "y"
    NUMERIC = "i"  # a whole date in digits
    UNIT = "u"
    WHICH = "w"  # this, next, last
    MARK = "p"  # until, ago: `before` a date or `behind` (after) it
    COMMA = ","
    VAGUE = "v"
    EVERY = "e"
    JOINER = "j"
    OTHER = "x"


@dataclass(frozen=True, slots=True)
class CalendarItem:
    kind: ItemKind
    number: int = 0  # months from 1, weekdays from Monday = 0
    # Of a unit, or of a determiner (WHICH); "word" for a month that is also a word, "short" for a short weekday,
    # "ordinal" or "signed" (8号) for a number
    name: str = ""
    before: frozenset[str] = frozenset()
    behind: frozenset[str] = frozenset()
    day: tuple[int, int, int] = (0, 0, 0)  # year, month and day, 0 where not given
    is_plain: bool = False  # a date even without context; for a number: may follow a month
    is_capital: bool = False
    is_joined: bool = False  # preceded by an article or similar


OTHER = CalendarItem(ItemKind.OTHER)
_RANGE = CalendarItem(ItemKind.MARK, before=frozenset({"range"}))
_RELATIVE = {"day": ItemKind.DAY, "week": ItemKind.WEEK, "month": ItemKind.MONTH, "year": ItemKind.YEAR}


def calendar_items(text: str, language: Language) -> list[CalendarItem]:
    """The items without joiners, which only set `is_joined`."""
    reader = _ItemReader(_split(tokenize(text), language), language)
    while reader.position < len(reader.tokens):
        reader.step()
    found: list[CalendarItem] = []
    is_joined = False
    for item in reader.items:
        if item.kind is not ItemKind.JOINER:
            found.append(replace(item, is_joined=True) if is_joined else item)
        is_joined = item.kind is ItemKind.JOINER
    return found


def _split(text: TokenizedText, language: Language) -> TokenizedText:
    """Korean: 금요일까지 is a weekday and "until" behind it."""
    heads, tails = _glued(language)
    parts: list[str] = []
    for token in text.tokens if tails else ():
        ends = (end for end in range(len(token) - 1, 0, -1) if token[:end] in heads and token[end:] in tails)
        end = 0 if token in heads else next(ends, 0)
        parts += [token[:end], token[end:]] if end else [token]
    return TokenizedText(tuple(parts), tuple(parts)) if tails else text


@cache
def _glued(language: Language) -> tuple[set[str], set[str]]:
    """Words of the calendar, and what may be written together with one of them, behind it."""
    dates, particles = calendar(language), words(language).particles
    signs = chain(dates.month_signs, dates.day_signs, dates.year_signs)
    heads = {word for phrase in chain(signs, dict(entries_of(dates))) for word in phrase.split()}
    return heads, {*particles, *chain(*dates.following.values())} if particles else set()


class _ItemReader:
    """Parses tokens from left to right: the longest calendar phrase, else a number, else OTHER."""

    def __init__(self, text: TokenizedText, language: Language) -> None:
        self.tokens = text.tokens
        self.items: list[CalendarItem] = []
        self.position = 0
        self._spelled = text.spelled
        self._dates = calendar(language)
        self._table = _table(language)
        self._signs = _signs(language)

    def step(self) -> None:
        token = self.tokens[self.position]
        found = self._table.at(self.tokens, self.position)
        if found is not None:
            self._read_phrase(found)
        elif token[0].isdecimal():
            self.position += 1
            self._read_number(token)
        else:
            self.position += 1
            self.items.append(CalendarItem(ItemKind.COMMA) if token in _COMMAS else OTHER)

    def _read_phrase(self, found: PhraseMatch[CalendarItem]) -> None:
        item = next(iter(found.labels), OTHER)
        if item.kind is ItemKind.COUNT:
            self._read_count()
            return
        self.position = found.end
        if item.kind is ItemKind.MARK:
            item = _merged(found.labels)
        if item.kind is ItemKind.MONTH_NAME:
            item = replace(item, is_capital=self._spelled[found.start][0].isupper())
        self.items.append(item)
        if item.kind is ItemKind.WEEK:
            self._read_day_of_week()

    def _read_day_of_week(self) -> None:
        """Chinese: 五 directly after 下周 is its Friday, unless the next character forms another word with it."""
        ahead = self.tokens[self.position : self.position + 2]
        for weekday, signs in enumerate(self._dates.week_days):
            if ahead and ahead[0] in signs and ahead[-1] not in self._dates.breaking:
                self.position += 1
                self.items.append(CalendarItem(ItemKind.WEEKDAY, weekday))
                return

    def _read_count(self) -> None:
        """Adjacent number words form one number: "twenty one", 二十三."""
        numbers: list[int] = []
        while self.position < len(self.tokens):
            found = self._table.at(self.tokens, self.position)
            counts = [item for item in found.labels if item.kind is ItemKind.COUNT] if found is not None else []
            if found is None or not counts:
                break
            numbers.append(counts[0].number)
            self.position = found.end
        self._append_signed(CalendarItem(ItemKind.COUNT, _number(numbers)))

    def _read_number(self, token: str) -> None:
        digits = token[:-2] if token.endswith(_ORDINAL_ENDINGS) else token
        first, dash, last = token.partition("-")
        if digits.isdecimal() and len(digits) <= _DIGITS_MAX:
            name = "ordinal" if digits != token else ""
            is_year = len(token) == _YEAR_DIGITS and int(digits) in YEARS
            year = CalendarItem(ItemKind.YEAR_NUMBER, int(digits))
            self._append_signed(year if is_year else self._day(int(digits), name))
            self._skip_stop()
        elif dash and _is_day(first) and _is_day(last):
            self.items += [self._day(int(first)), _RANGE, self._day(int(last))]
        else:
            self.items.append(numeric_date(token, self._dates.numeric_order) or OTHER)

    def _day(self, number: int, name: str = "") -> CalendarItem:
        return CalendarItem(ItemKind.NUMBER, number, name=name, is_plain=self._dates.day_follows_month)

    def _append_signed(self, item: CalendarItem) -> None:
        """Chinese, Japanese, Korean: 月, 号 and 年 after a number say what it counts."""
        sign = self._signs.at(self.tokens, self.position) if self.position < len(self.tokens) else None
        kind = next(iter(sign.labels)) if sign is not None else ItemKind.OTHER
        is_fitting = {
            ItemKind.MONTH_NAME: 1 <= item.number <= _MONTHS,
            ItemKind.NUMBER: 1 <= item.number <= _DAYS_MAX,
            ItemKind.YEAR_NUMBER: item.kind is ItemKind.YEAR_NUMBER,
        }
        if sign is not None and is_fitting[kind] and not (kind is ItemKind.NUMBER and self._is_amount()):
            self.position = sign.end
            item = CalendarItem(kind, item.number, name="signed", is_plain=True)
        self.items.append(item)

    def _is_amount(self) -> bool:
        """Japanese and Korean: 日 behind a number is its unit in 10日前, ten days ago."""
        unit = self._table.at(self.tokens, self.position)
        behind = self._table.at(self.tokens, unit.end) if unit is not None and unit.end < len(self.tokens) else None
        return behind is not None and any(item.behind & {"ago", "ahead"} for item in behind.labels)

    def _skip_stop(self) -> None:
        """Skip the full stop of a German ordinal: "14. Juni", "vom 3. bis"."""
        ahead = self.position + 1
        if self.tokens[self.position : ahead] == (".",) and ahead < len(self.tokens):
            found = self._table.at(self.tokens, ahead)
            if found is not None and any(item.kind in (ItemKind.MONTH_NAME, ItemKind.MARK) for item in found.labels):
                self.position = ahead


def numeric_date(token: str, order: str) -> CalendarItem | None:
    """ "2025-03-14", "14.06.1990", "3/22"; `order` as the calendar's `numeric_order`. None for ambiguous dates.

    Without a year of four digits, the context has to show that it is a date: `is_plain` is False.
    """
    separator = next((sign for sign in "-/." if sign in token), "-")
    parts = token.removesuffix("t").split(separator)  # the "T" of a timestamp
    if not 2 <= len(parts) <= 3 or not all(part.isdecimal() and len(part) <= _YEAR_DIGITS for part in parts):
        return None
    if len(parts[0]) == _YEAR_DIGITS:
        is_whole = len(parts) == 3 or (separator == "-" and len(parts[1]) == 2)
        day = int(parts[2]) if len(parts) == 3 else 0
        return _checked(int(parts[0]), int(parts[1]), day, is_plain=True) if is_whole else None
    year = _year_of(parts[2]) if len(parts) == 3 else 0
    if year is None or (len(parts) == 2 and (separator == "-" or (separator == "." and order != "day first"))):
        return None
    first, second = int(parts[0]), int(parts[1])
    if separator == ".":
        order = "day first"
    elif order == "either" and max(first, second) > _MONTHS:
        order = "day first" if first > _MONTHS else "month first"
    elif order == "either" and first != second:
        return None
    day, month = (first, second) if order == "day first" else (second, first)
    is_plain = len(parts[-1]) == _YEAR_DIGITS or (separator == "/" and day > _MONTHS)
    return _checked(year, month, day, is_plain=is_plain)


def _year_of(digits: str) -> int | None:
    if len(digits) == 2:
        return int(digits) + (1900 if int(digits) >= _LAST_CENTURY else 2000)
    return int(digits) if len(digits) == _YEAR_DIGITS else None


def _is_day(digits: str) -> bool:
    return digits.isdecimal() and 0 < int(digits) <= _DAYS_MAX


def _checked(year: int, month: int, day: int, *, is_plain: bool) -> CalendarItem | None:
    is_date = 1 <= month <= _MONTHS and 0 <= day <= _DAYS_MAX and (not year or year in YEARS)
    return CalendarItem(ItemKind.NUMERIC, day=(year, month, day), is_plain=is_plain) if is_date else None


def _number(words: Sequence[int]) -> int:
    """The value of number words: 20, 1 is 21; 2, 10, 3 is 23; 0 for anything else."""
    total = 0
    for number in words:
        if number == 10 and 2 <= total <= 9:
            total *= number
        elif total == 0 or (total % 10 == 0 and number < 10):
            total += number
        else:
            return 0
    return total


def _merged(marks: frozenset[CalendarItem]) -> CalendarItem:
    before = frozenset(label for mark in marks for label in mark.before)
    behind = frozenset(label for mark in marks for label in mark.behind)
    return CalendarItem(ItemKind.MARK, before=before, behind=behind)


@cache
def _table(language: Language) -> PhraseTable[CalendarItem]:
    return PhraseTable(entries_of(calendar(language)), calendar(language).unmeant)


@cache
def _signs(language: Language) -> PhraseTable[ItemKind]:
    dates = calendar(language)
    signs = {
        ItemKind.MONTH_NAME: dates.month_signs,
        ItemKind.NUMBER: dates.day_signs,
        ItemKind.YEAR_NUMBER: dates.year_signs,
    }
    return PhraseTable((sign, kind) for kind, phrases in signs.items() for sign in phrases)


def entries_of(dates: Calendar) -> Iterator[tuple[str, CalendarItem]]:
    """Phrases with their items; a phrase has one kind, or is a mark of several."""
    yield from _named(dates)
    for which in ("this", "next", "last", "coming", "latest"):
        yield from ((phrase, CalendarItem(ItemKind.WHICH, name=which)) for phrase in getattr(dates, which))
    own = {ItemKind.JOINER: dates.joiners, ItemKind.EVERY: dates.every, ItemKind.VAGUE: dates.vague}
    for kind, phrases in own.items():
        yield from ((phrase, CalendarItem(kind)) for phrase in phrases)
    for label, phrases in dates.preceding.items():
        yield from ((phrase, CalendarItem(ItemKind.MARK, before=frozenset({label}))) for phrase in phrases)
    for behind, phrases in dates.following.items():
        yield from ((phrase, CalendarItem(ItemKind.MARK, behind=frozenset({behind}))) for phrase in phrases)
    yield from ((word, CalendarItem(ItemKind.COUNT, number)) for word, number in dates.numbers.items())
    for word, number in dates.ordinals.items():
        yield word, CalendarItem(ItemKind.NUMBER, number, name="ordinal")


def _named(dates: Calendar) -> Iterator[tuple[str, CalendarItem]]:
    """Months, weekdays, periods relative to today, units."""
    for number, (full, short) in enumerate(zip(dates.months, dates.short_months, strict=True), start=1):
        for name in dict.fromkeys((*full, *short)):
            kind = "word" if name in dates.wordy_months else ""
            yield name, CalendarItem(ItemKind.MONTH_NAME, number, name=kind, is_plain=bool(dates.month_signs))
    for number, (full, short) in enumerate(zip(dates.weekdays, dates.short_weekdays, strict=True)):
        yield from ((name, CalendarItem(ItemKind.WEEKDAY, number)) for name in full)
        yield from ((name, CalendarItem(ItemKind.WEEKDAY, number, name="short")) for name in short)
    for unit, offsets in dates.relative.items():
        yield from ((phrase, CalendarItem(_RELATIVE[unit], offset)) for phrase, offset in offsets.items())
    for unit, names in dates.units.items():
        yield from ((name, CalendarItem(ItemKind.UNIT, name=unit)) for name in names)
