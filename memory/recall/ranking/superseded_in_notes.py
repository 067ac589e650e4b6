"""Checks the memories in earlier notes of a conversation: which are still valid, and which memories superseded the
rest.

A placed note is never reworded, so a memory that was superseded later stays in the prompt. The newest note has to
correct it, whether or not the question would find the correction. Only ids in earlier notes of this conversation are
looked up; the ranking applies the scope. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory.model import Memory, MemoryStatus
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.layout import SUCCESSIONS_MAX
from memory.recall.ranking.wording import wording


@dataclass(frozen=True, slots=True)
class NoteReview:
    """`still_valid`: active memories; `corrections`: the successors of the others; both in the order of the notes."""

    still_valid: tuple[Memory, ...] = ()
    corrections: tuple[Memory, ...] = ()


def review_notes(corpus: Corpus, in_notes: Sequence[str]) -> NoteReview:
    """`in_notes`: ids in earlier notes, oldest note first. Deleted memories have no correction; one already in a note
    is not repeated.
    """
    known = [memory for memory in map(corpus.memory, in_notes) if memory is not None]
    still_valid = [memory for memory in known if memory.status is MemoryStatus.ACTIVE]
    heard = set(in_notes)
    corrections: dict[str, Memory] = {}
    for memory in known:
        if memory.status is not MemoryStatus.SUPERSEDED:
            continue
        successor = _successor(corpus, memory)
        is_news = successor is not None and wording(successor.content) != wording(memory.content)
        if successor is not None and is_news and successor.id not in heard:
            corrections[successor.id] = successor
    return NoteReview(tuple(still_valid), tuple(corrections.values()))


def _successor(corpus: Corpus, memory: Memory) -> Memory | None:
    """What holds now in its place; None where that was deleted, put away, or never was."""
    for _ in range(SUCCESSIONS_MAX):
        following = corpus.memory(memory.superseded_by)
        if following is None or following.status is MemoryStatus.ACTIVE:
            return following
        memory = following
    return None
