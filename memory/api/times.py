"""Times in the API: taken as ISO 8601 (without an offset: UTC) or Unix seconds, given as ISO 8601 in UTC."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, TypeAlias

from msgspec import Meta

from memory.errors import BadInput
from memory.model.memories import TIME_MAX

TimeText: TypeAlias = Annotated[
    str, Meta(description="ISO 8601 in UTC, whole seconds.", examples=["2025-03-04T09:00:00Z"])
]


def time_of(value: str | float | None, name: str) -> float | None:
    """Unix seconds of an ISO 8601 text or a number, or a number as text as in query parameters."""
    if value is None:
        return None
    refused = BadInput(f"{name} must be ISO 8601 such as 2025-03-04T09:00:00Z, or Unix seconds; got {value!r:.40}")
    try:
        at = float(value)
    except ValueError:
        at = _iso_time(str(value), refused)
    if not (math.isfinite(at) and 0 <= at <= TIME_MAX):
        raise refused
    return at


def utc_offset_of(value: str | float | None) -> int | None:
    """Seconds by which a valid time in ISO 8601 is off UTC; None of other times: "Z" says nothing of a user's day."""
    try:
        offset = datetime.fromisoformat(value).utcoffset() if isinstance(value, str) else None
    except ValueError:
        return None
    return int(offset.total_seconds()) if offset else None


def _iso_time(text: str, refused: BadInput) -> float:
    try:
        read_time = datetime.fromisoformat(text)
        return (read_time if read_time.tzinfo else read_time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise refused from None


def time_text(at: float) -> str:
    """ISO 8601 in UTC, truncated to whole seconds: `2025-03-04T09:00:00Z`."""
    return datetime.fromtimestamp(math.floor(min(max(at, 0.0), TIME_MAX)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_text_or_none(at: float | None) -> str | None:
    return None if at is None else time_text(at)
