"""Signals: recognises messages that only greet, thank or acknowledge, in any of the languages.

Nothing is searched for such a message. It has to consist entirely of known phrases, in any mix of languages: a message
with any other word ("thanks, and the address?") is not a pleasantry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, product
from string import Formatter
from typing import TypeAlias

from memory.language.loader import LANGUAGES, Phrases, pleasantries
from memory.language.phrases import is_word, spellings, tokenize

PLEASANTRY_CHARACTERS_MAX = 80  # nothing longer is only a greeting

Tokens: TypeAlias = tuple[str, ...]


def is_pleasantry(text: str) -> bool:
    """Whether the text is only greetings, thanks and acknowledgements, or has no words at all ("👍")."""
    if len(text) > PLEASANTRY_CHARACTERS_MAX:
        return False
    words = [token for token in tokenize(text).tokens if is_word(token)]
    reached = {0}  # the words before each of these are covered by phrases; each position is visited once
    for start, word in enumerate(words):
        if start in reached:
            ends = (start + length for length in _LENGTHS.get(word, ()))
            reached.update(end for end in ends if tuple(words[start:end]) in _PHRASES)
    return len(words) in reached


def fill_slots(phrases: Phrases, slots: Mapping[str, Phrases]) -> Iterator[Tokens]:
    """Every phrase in each of its spellings, with every phrase of a slot for its "{name}"; "{name?}" may stay empty."""
    for phrase in phrases:
        pieces: list[set[Tokens]] = []
        for literal, slot, *_ in Formatter().parse(phrase):
            pieces.append(spellings(literal) or {()})
            if slot is not None:
                choices = {tokens for choice in slots[slot.removesuffix("?")] for tokens in spellings(choice)}
                pieces.append(choices | {()} if slot.endswith("?") else choices)
        yield from (tuple(chain.from_iterable(chosen)) for chosen in product(*pieces))


_PHRASES = frozenset(
    tokens for own in map(pleasantries, LANGUAGES) for tokens in fill_slots(own.phrases.words, own.slots)
)
_LENGTHS: defaultdict[str, set[int]] = defaultdict(set)  # of the phrases that begin with a word, in words
for _phrase in _PHRASES:
    _LENGTHS[_phrase[0]].add(len(_phrase))
