"""Recognises texts that consist of known phrases only, including words with repeated letters for emphasis.

"Hiii", "hahahah" and "6666" match "hi", "ha" and "666". Two equal letters inside a word are not emphasis: "supper" is
not "super". The meaning of phrases plays no role. Linear in the length of the text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby, product
from string import Formatter

from memory.language.loader import Phrases
from memory.language.phrases import is_word, spellings, tokenize

REPEATS_MIN = 3  # of one character, to count as emphasis inside a word; at its end, one more than in the spelling

Tokens = tuple[str, ...]


class PhraseSet:
    """Phrases that may make up a text, as tokens."""

    def __init__(self, phrases: Iterable[Tokens]) -> None:
        self._phrases = frozenset(phrases)
        self._words = frozenset(chain.from_iterable(self._phrases))
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)
        self._collapsed: defaultdict[str, list[str]] = defaultdict(list)
        for phrase in self._phrases:
            self._lengths[phrase[0]].add(len(phrase))
        for word in sorted(self._words):
            self._collapsed[_collapsed(word)].append(word)

    def covers(self, text: str) -> bool:
        """Whether the text consists of these phrases and punctuation only."""
        words: list[str] = []
        for token in tokenize(text).tokens:
            if token in self._words:
                words.append(token)
            elif is_word(token):
                word = self._without_emphasis(token)
                if word is None:
                    return False
                words.append(word)
        return bool(words) and self._reaches_the_end(words)

    def _reaches_the_end(self, words: list[str]) -> bool:
        """Whether a sequence of phrases covers all words; each position is visited once."""
        reached = {0}
        for start, word in enumerate(words):
            if start in reached:
                for length in self._lengths.get(word, ()):
                    if tuple(words[start : start + length]) in self._phrases:
                        reached.add(start + length)
        return len(words) in reached

    def _without_emphasis(self, token: str) -> str | None:
        """The known word of which the token repeats letters or syllables; None if there is none."""
        syllable = _repeated(token)
        if syllable in self._words or 2 * syllable in self._words:
            return syllable if syllable in self._words else 2 * syllable
        return next((word for word in self._collapsed.get(_collapsed(token), ()) if _emphasises(token, word)), None)


def fill_slots(phrases: Phrases, slots: Mapping[str, Phrases]) -> Iterator[Tokens]:
    """Every phrase in each of its spellings, with every phrase of a slot in place of its "{name}".

    A slot with a question mark, "{name?}", may stay empty.
    """
    for phrase in phrases:
        pieces: list[set[Tokens]] = []
        for literal, slot, *_ in Formatter().parse(phrase):
            pieces.append(spellings(literal) or {()})
            if slot is not None:
                choices = {tokens for choice in slots[slot.removesuffix("?")] for tokens in spellings(choice)}
                pieces.append(choices | {()} if slot.endswith("?") else choices)
        yield from (tuple(chain.from_iterable(chosen)) for chosen in product(*pieces))


def _repeated(token: str) -> str:
    """The repeated part of a token, at least two characters ("ha" of "hahah"); the token itself if nothing repeats."""
    lengths = range(2, len(token) // 2 + 1)
    return next((token[:n] for n in lengths if token[n:] == token[:-n]), token)


def _collapsed(word: str) -> str:
    return "".join(character for character, _ in groupby(word))


def _emphasises(token: str, word: str) -> bool:
    """Whether the token repeats characters of the word for emphasis only; both are equal without repetitions."""
    runs = list(zip(_runs(token), _runs(word), strict=True))
    inside = all(written == spelled or written >= max(spelled, REPEATS_MIN) for written, spelled in runs[:-1])
    return inside and runs[-1][0] >= runs[-1][1]


def _runs(word: str) -> list[int]:
    return [len(list(run)) for _, run in groupby(word)]
