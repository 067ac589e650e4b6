"""A recorded turn as one system gives it to another: with what became of it there."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

from memory.model.turns import Turn

_IDS = uuid.UUID("c2f4b8a6-1d37-5e92-9b60-7f8e5a3c4d11")


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


def copied_turn_id(user_id: str, turn_id: str) -> str:
    """The id of a turn of another system, or of another user, in this user's record: the same for each copy of it.

    The id in a file is the choice of whoever sends it. As it stands it could be that of another user's turn, and a
    refusal would show that there is one.
    """
    return str(uuid.uuid5(_IDS, f"{user_id}\x1f{turn_id}"))
