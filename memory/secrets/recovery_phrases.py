"""Finds recovery phrases of wallets by the lists that their words come from, without any label.

A sequence of words with the right check digits is one. Without them (a word is misspelt, or left out) it is one if
almost all words of a long sequence stand in one list and none is a word that sentences need; but not with commas
or in lines, for so people write what they want to buy. Phrases of other words need a label (`spoken`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from itertools import accumulate, repeat
from operator import sub

from mnemonic import Mnemonic

from memory.secrets.plain_text import PlainText
from memory.secrets.secret_classes import SecretClass, Span

LENGTHS = (24, 21, 18, 15, 12)  # words of a phrase with check digits
WORDS_MIN = LENGTHS[-1]
WORDS_MAX = LENGTHS[0] + 2  # with a word too many; what is longer is a list of another kind
RUN_WORDS_MAX = 120  # in a row: of more, each of the many windows would have to be checked
KNOWN_SHARE_MIN = 0.8  # of the words of a phrase without check digits; then some four of twelve stand in a row
GAP_CHARACTERS_MAX = 8  # between two words: "\n12. "


class _Kind(IntEnum):
    """Of a word, to see at once that a text has no phrase."""

    OTHER = 0
    LISTED = 1
    NUMBERING = 2
    LISTED_OF_SENTENCES = 3  # in a list, and needed by sentences


_FOUR_LISTED = bytes([_Kind.LISTED] * 4)
_MANY_LISTED = bytes([_Kind.LISTED] * WORDS_MIN)
_NO_DISTINCTION = bytes.maketrans(bytes([_Kind.LISTED_OF_SENTENCES]), bytes([_Kind.LISTED]))
_NUMBERING = bytes([_Kind.NUMBERING])
_MARKS = ".,;:()-_|/\"'[]"


@dataclass(frozen=True, slots=True)
class WordList:
    """One language's words, and the computation of its check digits."""

    words: frozenset[str]
    mnemonic: Mnemonic


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@cache
def word_lists() -> tuple[WordList, ...]:
    every = [Mnemonic(language) for language in sorted(Mnemonic.list_languages())]
    return tuple(WordList(frozenset(_both_forms(one.wordlist)), one) for one in every)


def _both_forms(words: Sequence[str]) -> Iterator[str]:
    """With accents as characters of their own, and without."""
    for word in words:
        yield unicodedata.normalize("NFC", word)
        yield unicodedata.normalize("NFD", word)


@cache
def _kinds(sentence_words: frozenset[str]) -> dict[str, int]:
    listed = frozenset[str]().union(*(known.words for known in word_lists()))
    numbers = {str(number): int(_Kind.NUMBERING) for number in range(100)}
    return numbers | {
        word: int(_Kind.LISTED_OF_SENTENCES if word in sentence_words else _Kind.LISTED) for word in listed
    }


def recovery_phrase_spans(plain: PlainText, sentence_words: frozenset[str]) -> Iterator[Span]:
    """Unordered; may overlap. `sentence_words`: those that sentences need, in any language."""
    lower = plain.lower
    for mark in _MARKS:
        lower = lower.replace(mark, " ")
    texts = lower.split()
    kinds = bytes(map(_kinds(sentence_words).get, texts, repeat(_Kind.OTHER))).translate(None, _NUMBERING)
    if not _may_have_phrase(kinds):
        return
    words = list(_placed(lower, texts))
    for known in word_lists():
        if len(known.words.intersection(texts)) * 2 >= WORDS_MIN:
            for start, end in (*_checked(words, plain, known), *_dense(words, plain, known, sentence_words)):
                yield start, end, SecretClass.PASSWORD


def _may_have_phrase(kinds: bytes) -> bool:
    """Whether almost all of so many words in a row stand in lists."""
    if _FOUR_LISTED not in kinds and _MANY_LISTED not in kinds.translate(_NO_DISTINCTION):
        return False
    sums = [0, *accumulate(kind != _Kind.OTHER for kind in kinds)]
    most = max(map(sub, sums[WORDS_MIN:], sums), default=0)
    return most >= KNOWN_SHARE_MIN * WORDS_MIN


def _placed(text: str, texts: Sequence[str]) -> Iterator[_Word]:
    """The words with letters, and where they stand."""
    end = 0
    for word in texts:
        start = text.find(word, end)
        end = start + len(word)
        if not word.isdigit():
            yield _Word(word, start)


def _checked(words: Sequence[_Word], plain: PlainText, known: WordList) -> Iterator[tuple[int, int]]:
    """Phrases with valid check digits."""
    for run in _runs(words, plain, known.words):
        first = 0
        while first + WORDS_MIN <= len(run) <= RUN_WORDS_MAX:
            texts = [word.text for word in run[first : first + LENGTHS[0]]]
            fitting = (size for size in LENGTHS if size <= len(texts))
            length = next((size for size in fitting if known.mnemonic.check(" ".join(texts[:size]))), 0)
            if length:
                yield run[first].start, run[first + length - 1].end
            first += length or 1


def _runs(words: Sequence[_Word], plain: PlainText, allowed: AbstractSet[str]) -> Iterator[list[_Word]]:
    """Sequences of allowed words that stand close together."""
    run: list[_Word] = []
    for word in words:
        if run and (word.text not in allowed or not _is_near(plain.text[run[-1].end : word.start])):
            yield run
            run = []
        if word.text in allowed:
            run.append(word)
    yield run


def _dense(
    words: Sequence[_Word], plain: PlainText, known: WordList, sentence_words: AbstractSet[str]
) -> Iterator[tuple[int, int]]:
    """Long sequences of words that almost all stand in the list; never two in a row that do not."""
    listed = known.words - sentence_words
    run: list[_Word] = []
    for word in [*words, _Word("", len(plain.text))]:
        gap = plain.text[run[-1].end : word.start] if run else ""
        is_near = _is_near(gap) and (gap == " " or _is_numbered(gap))
        is_foreign = word.text in sentence_words or not word.text.isalpha()
        if is_near and not is_foreign and (word.text in listed or run[-1].text in listed):
            run.append(word)
            continue
        run = run if run and run[-1].text in listed else run[:-1]
        if WORDS_MIN <= len(run) <= WORDS_MAX and sum(one.text in listed for one in run) >= KNOWN_SHARE_MIN * len(run):
            yield run[0].start, run[-1].end
        run = [word] if word.text in listed else []


def _is_near(gap: str) -> bool:
    """Whether neither much nor the end of a sentence stands between two words."""
    return len(gap) <= GAP_CHARACTERS_MAX and (_is_numbered(gap) or not any(mark in gap for mark in (". ", "? ", ": ")))


def _is_numbered(gap: str) -> bool:
    return any(character.isdigit() for character in gap)
