"""Chooses memories by the claim that they were made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory.errors import BadInput
from memory.model.memories import statement_key

FILTER_CHARACTERS_MAX = 1_000  # longer than any subject, name or value that is worth looking for

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

    def __post_init__(self) -> None:
        for field in ("subject", "name", "attribute", "value"):
            if len(getattr(self, field)) > FILTER_CHARACTERS_MAX:
                raise BadInput(f"{field} may have {FILTER_CHARACTERS_MAX} characters")

    @property
    def is_any(self) -> bool:
        return self == ANY_CLAIM

    def admits(self, subject: str, name: str, attribute: str, values: Sequence[str]) -> bool:
        asked = ((self.subject, (subject,)), (self.name, (name,)), (self.attribute, (attribute,)), (self.value, values))
        return all(not wanted or any(_is_same(wanted, one) for one in given) for wanted, given in asked)


def _is_same(wanted: str, given: str) -> bool:
    return wanted == given or _OF_NO_WORD != statement_key(wanted) == statement_key(given)


ANY_CLAIM = ClaimFilter()

__all__ = ["ANY_CLAIM", "FILTER_CHARACTERS_MAX", "ClaimFilter"]
