"""Turns that failed or were aborted, among those that teach: gaps in the talk, which whoever reads it has to know of.

They teach nothing, and a "yes" behind one confirms nothing that was asked before it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory.learn.feedback import is_broken
from memory.model import Turn


def with_failed_turns(
    context: Sequence[Turn], turns: Sequence[Turn], breaks: Sequence[Turn]
) -> tuple[list[Turn], list[Turn]]:
    """Context and window with the turns that broke off in their places, by time: a "yes" is to what stood right before.

    What broke off before all of the context is left out.
    """
    oldest, first = min(turn.at for turn in (*context, *turns)), min(turn.at for turn in turns)
    before = [turn for turn in breaks if oldest <= turn.at < first]
    during = [turn for turn in breaks if turn.at >= first]
    return (
        sorted([*context, *before], key=lambda turn: turn.at) if before else list(context),
        sorted([*turns, *during], key=lambda turn: turn.at) if during else list(turns),
    )


def muted(turn: Turn) -> Turn:
    """A turn that broke off stays as a gap: nobody learns from it, or takes what it asked for asked."""
    return replace(turn, messages=(), answer="") if is_broken(turn) else turn


__all__ = ["muted", "with_failed_turns"]
