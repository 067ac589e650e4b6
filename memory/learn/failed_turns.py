"""Inserts failed and aborted turns among the turns that are learnt, so that a reader knows about the gaps.

Nothing is learnt from them, and a "yes" after one confirms nothing that was asked before it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory.learn.feedback import is_broken
from memory.model import Turn


def with_failed_turns(
    context: Sequence[Turn], turns: Sequence[Turn], breaks: Sequence[Turn]
) -> tuple[list[Turn], list[Turn]]:
    """Context and window with the failed turns at their positions in time: a "yes" refers to what stood right before.

    Failed turns before the whole context are left out.
    """
    oldest, first = min(turn.at for turn in (*context, *turns)), min(turn.at for turn in turns)
    before = [turn for turn in breaks if oldest <= turn.at < first]
    during = [turn for turn in breaks if turn.at >= first]
    return (
        sorted([*context, *before], key=lambda turn: turn.at) if before else list(context),
        sorted([*turns, *during], key=lambda turn: turn.at) if during else list(turns),
    )


def muted(turn: Turn) -> Turn:
    """A failed turn without its content: nothing is learnt from it, and its requests have no effect."""
    return replace(turn, messages=(), answer="") if is_broken(turn) else turn
