"""Calendar days of moments, as notes show them."""

from __future__ import annotations

from datetime import UTC, datetime

DAY_SECONDS = 86_400.0
DAY_LENGTHS = (4, 7, 10)  # 2026, 2026-01, 2026-01-31


def day_text(at: float, offset: int = 0) -> str:
    """The day, as 2026-01-31. `at`: Unix seconds; `offset`: of the zone, in seconds east of UTC."""
    try:
        return datetime.fromtimestamp((at + offset) // DAY_SECONDS * DAY_SECONDS, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return "date unknown"


def period_text(begin: float | None, end: float | None) -> str:
    """A day, month or year where it is one, else its first and last day; with one bound "from" or "until" that. ""
    without any. Unix seconds of midnights, the end exclusive.
    """
    if begin is None or end is None:
        return f"from {day_text(begin)}" if begin is not None else "" if end is None else f"until {_last_day(end)}"
    first, last = day_text(begin), _last_day(end)
    if first == last:
        return first
    if first.endswith("-01-01") and last == f"{first[:4]}-12-31":
        return first[:4]
    if first.endswith("-01") and last[:7] == first[:7] and day_text(end).endswith("-01"):
        return first[:7]
    return f"{first} to {last}"


def _last_day(end: float) -> str:
    return day_text(end - DAY_SECONDS)


def with_days(text: str, days: str) -> str:
    """`days`: a `period_text`. "", days of no calendar, or of a year that the text names are not added."""
    is_named = any(bound[:4] in text for bound in _bounds(days))
    return f"{text} ({days})" if _is_period(days) and not is_named else text


def without_days(text: str) -> str:
    kept, _, days = text.removesuffix(")").rpartition(" (")
    return kept if text.endswith(")") and _is_period(days) else text


def _is_period(days: str) -> bool:
    return all(len(bound) in DAY_LENGTHS and bound.replace("-", "").isdecimal() for bound in _bounds(days))


def _bounds(days: str) -> list[str]:
    return days.removeprefix("from ").removeprefix("until ").split(" to ")
