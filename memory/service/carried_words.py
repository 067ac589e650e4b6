"""Words that a fact took along from another one of its turn, to be understood: they go when that one does. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memory.language.restating import as_typed
from memory.model import Evidence, Memory
from memory.model.days import without_days
from memory.model.withdrawn import all_evidence


def without_carried(memory: Memory, gone: Iterable[Memory]) -> Memory:
    """The memory in its own words alone, if it took those of one of `gone` along."""
    if not memory.evidence:
        return memory
    turns = {one.turn_id for one in memory.evidence}
    others = (all_evidence(other) for other in gone if other.id != memory.id)
    of_turn = [quoted[0] for quoted in others if turns & {one.turn_id for one in quoted}]
    content = without_carried_words(memory.content, memory.evidence[0], of_turn)
    return memory if content == memory.content else replace(memory, content=content)


def without_carried_words(text: str, said: Evidence, gone: Iterable[Evidence]) -> str:
    """The text of a fact, or, if it has words of one of `gone` beside its own, its own in one line, with its days."""
    own, told = " ".join(said.words.split()), without_days(text)
    if any(as_typed(other.words, told) and not as_typed(other.words, own) for other in gone):
        return own + text[len(told) :]
    return text
