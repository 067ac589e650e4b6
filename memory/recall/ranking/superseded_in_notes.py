"""Which memories in earlier notes of a conversation are still valid, and which memories superseded the others.

A placed note is never reworded, so a memory that was superseded later stays in the prompt. The newest note has to
correct it, whether or not the question would find the correction. Only ids in earlier notes of this conversation are
looked up; the ranking applies the scope. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory.model import Memory
from memory.recall.ranking.layout import ACTIVE, SUPERSEDED, Layout


@dataclass(frozen=True, slots=True)
class NoteReview:
    """`still_valid`: active memories; `corrections`: rows of the others' successors; both in the order of the notes."""

    still_valid: tuple[Memory, ...] = ()
    corrections: tuple[int, ...] = ()


def review_notes(layout: Layout, in_notes: Sequence[str]) -> NoteReview:
    """`in_notes`: ids, oldest note first. Deleted memories have no correction; one in a note is not repeated."""
    rows = [row for one in in_notes if (row := layout.places.get(one)) is not None]
    status, wording = layout.facts["status"], layout.facts["wording"]
    superseded = [row for row in rows if status[row] == SUPERSEDED]
    following = dict(zip(layout.overtaken.tolist(), layout.overtaking.tolist(), strict=True)) if superseded else {}
    pairs = [(row, following[row]) for row in superseded if row in following]
    news = [row for old, row in pairs if wording[row] != wording[old] and layout.ids[row] not in in_notes]
    return NoteReview(tuple(layout.memories[row] for row in rows if status[row] == ACTIVE), tuple(dict.fromkeys(news)))
