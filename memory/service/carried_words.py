"""Words that a fact took along from another one of its turn, to be understood: they go when that one does. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from memory.language.restating import as_typed
from memory.model import Claim, Evidence, Memory
from memory.model.days import without_days
from memory.model.withdrawn import all_evidence

Fact = TypeVar("Fact", Claim, Memory)


def without_carried(memory: Memory, gone: Iterable[Memory]) -> Memory:
    """The memory in its own words alone, if it took those of one of `gone` along."""
    if not memory.evidence:
        return memory
    turns = {one.turn_id for one in memory.evidence}
    near = [one for one in gone if one.id != memory.id and turns & {quoted.turn_id for quoted in all_evidence(one)}]
    words = [word for one in near for word in (all_evidence(one)[0].words, *one.values)]
    content = without_carried_words(memory.content, memory.evidence[0], words)
    return (
        memory if content == memory.content else replace(with_own_fields(memory, memory.evidence[0]), content=content)
    )


def without_carried_words(text: str, said: Evidence, gone: Iterable[str]) -> str:
    """The text of a fact, or, if it has words of `gone` beside its own, its own in one line, with its days.

    `gone`: what the others said, and their values, which a model may have put in place of a pronoun.
    """
    own, told = " ".join(said.words.split()), without_days(text)
    if any(as_typed(words, told) and not as_typed(words, own) for words in gone):
        return own + text[len(told) :]
    return text


def with_own_fields(fact: Fact, said: Evidence) -> Fact:
    """With its name and values only where its own words have them."""
    values = tuple(value for value in fact.values if as_typed(value, said.words))
    return replace(fact, name=as_typed(fact.name, said.words), values=values)
