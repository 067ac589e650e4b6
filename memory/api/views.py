"""Makes the JSON of an answer from a value with the same fields: times as text, and what is empty as null."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, get_origin, get_type_hints

import msgspec

from memory.api.times import TimeText, time_text, time_text_or_none

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
