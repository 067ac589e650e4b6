"""Words that a fact took along from another one of its turn, to be understood: they go when that one does. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memory.language.word_boundaries import as_typed
from memory.model import Memory
from memory.model.days import without_days


def own_words(memory: Memory) -> str:
    """In one line, without what it took along."""
    return " ".join(memory.evidence[0].words.split()) if memory.evidence else memory.content


def without_carried(memory: Memory, gone: Iterable[Memory]) -> Memory:
    """The memory in its own words alone, with its days, if it took those of one of `gone` along."""
    own, content = own_words(memory), without_days(memory.content)
    if content == own or not any(_takes_along(memory, own, other) for other in gone):
        return memory
    return replace(memory, content=own + memory.content[len(content) :])


def carries(text: str, own: str, words: str) -> bool:
    """Whether a text has these words beside its own."""
    return bool(as_typed(words, text)) and not as_typed(words, own)


def _takes_along(memory: Memory, own: str, other: Memory) -> bool:
    turns = {one.turn_id for one in memory.evidence} & {one.turn_id for one in other.evidence}
    return bool(turns) and memory.id != other.id and carries(memory.content, own, own_words(other))
