"""Whether what was said later changes what was said before: by subject, attribute and the user's own words of change.

Two statements that merely resemble each other stay two. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.learn.terms import terms


@dataclass(frozen=True, slots=True)
class Verdict:
    """The older statement no longer holds. `remainder`: what of it still does, word for word, or ""."""

    remainder: str = ""


def may_change(content: str) -> bool:
    """Whether the statement could change an earlier one, so that the earlier ones have to be looked at."""
    return False


def compare(newer: str, older: str) -> Verdict | None:
    """How `newer` changes `older`, or None where both hold."""
    return None


def covers(known: str, content: str) -> bool:
    """Whether `known` already says all that `content` says, order and small words aside."""
    wanted = terms(content)
    return bool(wanted) and wanted <= terms(known)
