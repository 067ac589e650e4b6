"""What a question says about time: "in May 2023", "last week", "before October", "上周". In UTC.

Dates are read as in statements (`memory.language.dates`), but a date that may mean several times means all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from memory.language.dates import MarkedDate, dates_asked_for, midnight
from memory.recall.ranking.lexical import fold

DAY = 86_400.0
SPANS_MAX = 24  # per question
HALF_WEEK = timedelta(days=3)  # "two weeks ago" is no certain day


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, `[start, end)` in Unix seconds; either end may be infinite."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class TimeQuestion:
    spans: tuple[Span, ...] = ()
    asks_when: bool = False
    asks_about_past: bool = False  # asks about an earlier state, so that superseded memories may be returned


_DAY_AND_YEAR = re.compile(r"(?<=\d),(?=(?:19|20)\d\d\b)")  # "December 1,2023"
_LAST_WEEKEND = re.compile(r"\blast weekend|\bletztes wochenende|\bfin de semana pasado|上个?周末")
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


def time_question(text: str, *, now: float) -> TimeQuestion:
    """The times that a question names, as far as they have begun. `now`: Unix seconds."""
    folded = fold(text)
    named = dates_asked_for(_DAY_AND_YEAR.sub(", ", text), now)
    if not named and _LAST_WEEKEND.search(folded):  # no day of a statement's, but near enough for a question
        named = dates_asked_for("last week", now)
    if any(not one.is_relative for one in named):  # "last week, as told on 6 November" is relative to that date
        named = [one for one in named if not one.is_relative]
    spans = dict.fromkeys(span for one in named for span in _spans(one, now))
    is_before = any(one.mark == "before" for one in named)
    return TimeQuestion(tuple(spans)[:SPANS_MAX], bool(_WHEN.search(folded)), is_before or bool(_PAST.search(folded)))


def _spans(named: MarkedDate, now: float) -> Iterator[Span]:
    """Several where year or week are open; of a time with one end, the latest."""
    widened = HALF_WEEK if named.unit == "week" else timedelta(0)
    found = (Span(midnight(one.begin - widened), midnight(one.end + widened)) for one in named.dated.options)
    begun = [span for span in found if span.start <= now]
    match named.mark:
        case "before" if begun:
            yield Span(-math.inf, begun[-1].start)
        case "since" | "after" if begun and not named.dated.is_range:
            yield Span(begun[-1].start, math.inf)
        case _:
            yield from begun
