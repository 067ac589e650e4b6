"""Chooses memories by the claim that they were made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memory.errors import BadInput
from memory.model.memories import statement_key

FILTER_CHARACTERS_MAX = 1_000  # longer than any subject, name or value that is worth looking for

_FIELDS = ("subject", "name", "attribute", "value")
_OF_NO_WORD = statement_key("")


@dataclass(frozen=True, slots=True)
class ClaimFilter:
    """Fields that a memory must have, whole and not in part; empty means "any". `value`: one of its values.

    Compared as learning compares values: ignoring case, white space, character width and punctuation.
    """

    subject: str = ""
    name: str = ""
    attribute: str = ""
    value: str = ""
    _asked: tuple[tuple[int, str, str], ...] = field(init=False, repr=False, compare=False)  # place, text, key

    def __post_init__(self) -> None:
        for name in _FIELDS:
            if len(getattr(self, name)) > FILTER_CHARACTERS_MAX:
                raise BadInput(f"{name} may have {FILTER_CHARACTERS_MAX} characters")
        texts = ((place, getattr(self, name)) for place, name in enumerate(_FIELDS))
        asked = tuple((place, text, statement_key(text)) for place, text in texts if text)
        object.__setattr__(self, "_asked", asked)

    @property
    def is_any(self) -> bool:
        return self == ANY_CLAIM

    def admits(self, subject: str, name: str, attribute: str, values: Sequence[str]) -> bool:
        given = ((subject,), (name,), (attribute,), values)
        return all(
            any(text == one or _OF_NO_WORD != key == statement_key(one) for one in given[place])
            for place, text, key in self._asked
        )


ANY_CLAIM = ClaimFilter()
