"""Puts the facts of one sentence next to one another in a listing. Leaves none out, and adds none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from memory.model.memories import Memory

Row = TypeVar("Row")


def together(
    rows: Sequence[Row], sentence_of: Callable[[Row], str | None], place_of: Callable[[Row], Any] = lambda row: 0
) -> list[Row]:
    """Rows of one sentence stand where the first of them stood, ordered by `place_of`; all others keep their order."""
    sentences: dict[object, list[Row]] = {}
    for number, row in enumerate(rows):
        sentences.setdefault(sentence_of(row) or number, []).append(row)
    return [row for facts in sentences.values() for row in sorted(facts, key=place_of)]


def facts_together(memories: Sequence[Memory]) -> list[Memory]:
    """Facts of one sentence in the order in which they stand in it."""
    return together(memories, lambda one: one.sentence_id, _place_in_sentence)


def _place_in_sentence(memory: Memory) -> int:
    return memory.evidence[0].quote.find(memory.evidence[0].clause) if memory.sentence_id else 0
