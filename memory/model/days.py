"""Calendar days of moments, as notes show them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

DAY_SECONDS = 86_400.0
DAYS_REMEMBERED = 2_048  # cached texts: a few hundred KB


def day_text(at: float, offset: int = 0) -> str:
    """The day, as 2026-01-31. `at`: Unix seconds; `offset`: of the zone, in seconds east of UTC."""
    return _day_text((at + offset) // DAY_SECONDS)


@lru_cache(DAYS_REMEMBERED)
def _day_text(number: float) -> str:
    try:
        return datetime.fromtimestamp(number * DAY_SECONDS, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return "date unknown"
