"""A recorded turn as one system gives it to another: with what became of it there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memory.model.turns import Turn


class Learning(StrEnum):
    LEARNT = "learnt"
    DUE = "due"  # the system that gets it learns it
    NEVER = "never"  # failed, abandoned, or withdrawn because something was forgotten


@dataclass(frozen=True, slots=True)
class TurnCopy:
    """`in_summaries`: False of a turn that says what was forgotten or withheld, or asks for that."""

    turn: Turn
    learning: Learning = Learning.LEARNT
    in_summaries: bool = True


__all__ = ["Learning", "TurnCopy"]
