"""Makes the JSON of an answer from a value with the same fields: times as text, and what is empty as null.

Times are taken as ISO 8601 (without an offset: UTC) or Unix seconds, and given as ISO 8601 in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from memory.errors import BadInput
from memory.model.memories import TIME_MAX

TimeText: TypeAlias = Annotated[
    str, Meta(description="ISO 8601 in UTC, whole seconds.", examples=["2025-03-04T09:00:00Z"])
]

_View = TypeVar("_View", bound=msgspec.Struct)


def view_of(kind: type[_View], shown: object, **others: object) -> _View:
    """`others`: the fields that `shown` does not have under their names, or not as they are to be shown."""
    forms = _forms(kind)
    same = {name: form(getattr(shown, name)) for name, form in forms.items() if name not in others}
    return kind(**same, **others)


@cache
def _forms(kind: type[msgspec.Struct]) -> Mapping[str, Callable[[Any], Any]]:
    """How the value of each field is shown."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: _form(hints[name]) for name in kind.__struct_fields__}


def _form(hint: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - a type
    if hint == TimeText:
        return time_text
    if hint == TimeText | None:
        return time_text_or_none
    if hint == str | None:
        return lambda text: text or None
    if get_origin(hint) in (list, dict):  # what is shown may be a tuple, or any mapping
        form: Callable[[Any], Any] = get_origin(hint)
        return form
    return lambda value: value


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
