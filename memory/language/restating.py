"""Whether a text may say what a forgotten statement says, in the same or in similar words. Pure.

Lexical, and rather too often than too seldom: what it finds is left out of summaries, which costs a summary a sentence,
while what it misses comes back. A text says a statement if it contains it, if it has all its names and numbers and half
of its words, or if it has one of its codes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from memory.language.content import content_words
from memory.language.phrases import is_han
from memory.language.specific_words import specific_words

WORDS_SHARE_MIN, PLAIN_SHARE_MIN = 0.5, 0.6  # of the content words, beside names and numbers, and without any
WORDS_MIN = 2  # a single word is too little, unless it stands there as it was said
CODE_CHARACTERS_MIN = 3  # with a digit; shorter ones, and years, occur by chance
YEARS = range(1900, 2100)
HAN_PHRASE_MIN = 3  # characters
# Share of a Chinese topic's character pairs: four characters make three pairs, of which one may differ.
PAIRS_SHARE_MIN = 0.6

_EDGES = " .,;:!?…。，！？"


@dataclass(frozen=True, slots=True)
class Wording:
    """A statement as it is looked for. `text`: folded; all of a text, unless it `is_phrase`."""

    text: str
    is_phrase: bool
    words: frozenset[str]
    specific: frozenset[str]
    codes: frozenset[str]

    def is_in(self, plain: str) -> bool:
        """Whether a text says it; `plain`: the text as `folded`."""
        if self.is_phrase and not any(word in plain for word in self.specific or self.words):
            return False  # most texts, and fast: thousands of texts are asked for hundreds of statements
        if plain.strip(_EDGES) == self.text or (self.is_phrase and begins_word(self.text, plain)):
            return True
        if any(begins_word(code, plain) for code in self.codes):
            return True
        if len(self.words) < WORDS_MIN or not all(begins_word(word, plain) for word in self.specific):
            return False
        share = WORDS_SHARE_MIN if self.specific else PLAIN_SHARE_MIN
        return sum(begins_word(word, plain) for word in self.words) >= share * len(self.words)


def wording_of(statement: str) -> Wording:
    text, words, specific = folded(statement).strip(_EDGES), content_words(statement), specific_words(statement)
    is_han_phrase = any(map(is_han, text)) and len(text) >= HAN_PHRASE_MIN
    is_phrase = bool(words) and (" " in text or is_han_phrase)  # "yes, please" and "Leeds" alone say too little
    return Wording(text, is_phrase, words, specific, frozenset(filter(_is_code, specific)))


def has_code_of(statement: str, text: str) -> bool:
    """Whether the text has a number or another code of the statement."""
    plain = folded(text)
    return any(begins_word(code, plain) for code in specific_words(statement) if _is_code(code))


def says_all(words: frozenset[str], said: frozenset[str]) -> bool:
    """Whether all words occur. In Chinese: every character and most pairs, since word boundaries are ambiguous."""
    pairs = {word for word in words if is_han(word)}
    has_characters = set("".join(pairs)) <= set("".join(said))
    return words - pairs <= said and has_characters and len(pairs & said) >= PAIRS_SHARE_MIN * len(pairs)


def says_any(text: str, wordings: Iterable[Wording]) -> bool:
    plain = folded(text)
    return any(wording.is_in(plain) for wording in wordings)


def folded(text: str) -> str:
    """As `content_words` folds, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _is_code(word: str) -> bool:
    has_digit = any(character.isdigit() for character in word)
    is_year = word.isdecimal() and int(word) in YEARS
    return has_digit and len(word) >= CODE_CHARACTERS_MIN and not is_year


def begins_word(word: str, text: str) -> bool:
    """Whether it stands where a word begins; in scripts without spaces, anywhere."""
    at = text.find(word)
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum() or is_han(word[:1]) or is_han(text[at - 1]):
            return True
        at = text.find(word, at + 1)
    return False
