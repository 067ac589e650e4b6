"""Tokenizes text, finds phrases among the tokens, longest first, and guesses the language, without interpreting them.

A token is a word, a number as written ("14th", "3/22", "$50"), one Chinese character, or a punctuation mark that
separates clauses. A Chinese phrase is therefore a sequence of tokens like any other. The language is that of the
script, or that to which the most words are known.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, wraps
from itertools import chain
from typing import Generic, TypeVar

from memory.language.loader import LANGUAGES, Language, calendar, words

CACHED_TEXTS_MAX = 4_096  # of a sentence or two each: the same memories are compared again and again
# Of a cached text: users' texts must not fill the memory of a process, nor stay in it long after erasure
TEXT_CHARACTERS_MAX = 500

_HAN = "\u3400-\u9fff"
_TOKEN = re.compile(
    rf"[$€£¥]?\d+(?:[.,:/-]\d+)*(?:[^\W\d_{_HAN}]{{1,2}}(?![^\W\d_{_HAN}]))?"
    rf"|[{_HAN}]|[^\W\d_{_HAN}]+(?:'[^\W\d_{_HAN}]+)*"
    rf"|[.,;:!?。、\n()\"–—]|(?<=\s)-(?=\s)|(?<=[{_HAN}])\W"
)
_CLITICS = ("'s", "'m", "'re", "'ve", "'ll", "'d")
_NEGATION = "n't"
_SPACED: tuple[Language, ...] = ("en", "de", "es")  # with spaces between words; "en" wins ties
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})

T = TypeVar("T")
Label = TypeVar("Label")


def cached_by_text(read: Callable[[str], T]) -> Callable[[str], T]:
    """The same function with an LRU cache for short texts."""
    cached = lru_cache(maxsize=CACHED_TEXTS_MAX)(read)

    @wraps(read)
    def recalled(text: str) -> T:
        return cached(text) if len(text) <= TEXT_CHARACTERS_MAX else read(text)

    return recalled


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """`spelled`: as written; `tokens`: in lower case; of the same length."""

    spelled: tuple[str, ...]
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PhraseMatch(Generic[Label]):
    """`tokens[start:end]` is a phrase; `labels` is empty for a phrase that has to be ignored here."""

    start: int
    end: int
    labels: frozenset[Label]


class PhraseTable(Generic[Label]):
    """Phrases with their labels; one phrase may have several."""

    def __init__(self, entries: Iterable[tuple[str, Label]], unmeant: Iterable[str] = ()) -> None:
        gathered: dict[tuple[str, ...], set[Label]] = {}
        for phrase in unmeant:
            for tokens in spellings(phrase):
                gathered.setdefault(tokens, set())
        for phrase, label in entries:
            for tokens in spellings(phrase):
                gathered.setdefault(tokens, set()).add(label)
        self._by_first: dict[str, list[tuple[tuple[str, ...], frozenset[Label]]]] = {}
        for tokens, labels in sorted(gathered.items(), key=lambda entry: -len(entry[0])):
            self._by_first.setdefault(tokens[0], []).append((tokens, frozenset(labels)))

    def at(self, tokens: Sequence[str], start: int) -> PhraseMatch[Label] | None:
        """The longest phrase that starts there, or None."""
        for phrase, labels in self._by_first.get(tokens[start], ()):
            end = start + len(phrase)
            if tuple(tokens[start:end]) == phrase:
                return PhraseMatch(start, end, labels)
        return None

    def found(self, tokens: Sequence[str]) -> Iterator[PhraseMatch[Label]]:
        """Phrases in order, without overlap."""
        start = 0
        while start < len(tokens):
            found = self.at(tokens, start)
            if found is not None and found.labels:
                yield found
            start = found.end if found is not None else start + 1

    def labels(self, tokens: Sequence[str]) -> set[Label]:
        return {label for found in self.found(tokens) for label in found.labels}


@cached_by_text
def tokenize(text: str) -> TokenizedText:
    spelled: list[str] = []
    for token in _TOKEN.findall(unicodedata.normalize("NFKC", text).replace("’", "'")):
        spelled.extend(_parts(token))
    return TokenizedText(tuple(spelled), tuple(_variants().get(token, token.casefold()) for token in spelled))


def is_word(token: str) -> bool:
    """Whether it is not punctuation."""
    return token[-1].isalnum()


def is_clitic(token: str) -> bool:
    """Whether it is a part that `tokenize` splits off a word: "n't", "'s"."""
    return token == _NEGATION or token in _CLITICS


def is_han(token: str) -> bool:
    return "\u3400" <= token[0] <= "\u9fff"


def spellings(phrase: str) -> set[tuple[str, ...]]:
    """As written, without accents ("él" is not "el", another word), and with umlauts written out ("ue")."""
    tokens = tokenize(phrase).tokens
    if phrase.isascii() or not tokens or is_han(tokens[0]):
        return {tokens} if tokens else set()
    bare = tuple(unaccented(token) for token in tokens)
    found = {tokens, tuple(token.translate(_UMLAUTS) for token in tokens)}
    return found if len(bare) == 1 and bare[0] in _grammar() else found | {bare}


def _parts(token: str) -> list[str]:
    """ "don't" becomes "do" and "n't", "Anna's" becomes "Anna" and "'s"."""
    lower = token.lower()
    for ending in (_NEGATION, *_CLITICS):
        if lower.endswith(ending) and len(token) > len(ending):
            return [token[: -len(ending)], token[-len(ending) :]]
    return [token]


def unaccented(token: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", token) if not unicodedata.combining(c))


@cache
def _variants() -> dict[str, str]:
    return {written: read_as for language in LANGUAGES for written, read_as in words(language).variants.items()}


@cache
def _grammar() -> frozenset[str]:
    return frozenset(word for language in LANGUAGES for word in words(language).function_words)


@cached_by_text
def candidates(text: str) -> tuple[Language, ...]:
    """Possible languages, most likely first; never empty. Several for ties and mixed texts."""
    tokens = [token for token in tokenize(text).tokens if is_word(token)]
    others = [token for token in tokens if not is_han(token)]
    han = len(tokens) - len(others)
    if not han or any("\u3041" <= character <= "\u30ff" for character in text):
        return _spaced(others, text)
    if not others:
        return ("zh",)
    spaced = _spaced(others, text)
    return ("zh", *spaced) if han >= len(others) else (*spaced, "zh")


def _spaced(tokens: list[str], text: str) -> tuple[Language, ...]:
    lower = text.lower()
    scores = {
        language: sum(token in _vocabulary(language) for token in tokens)
        + any(letter in lower for letter in words(language).letters)
        for language in _SPACED
    }
    best = max(scores.values())
    return tuple(language for language in _SPACED if scores[language] == best)


@cache
def _vocabulary(language: str) -> frozenset[str]:
    """Words that are a phrase of their own in the language's files."""
    single = (tokens for phrase in _phrases(language) for tokens in spellings(phrase) if len(tokens) == 1)
    return frozenset(tokens[0] for tokens in single)


def _phrases(language: str) -> Iterator[str]:
    own, dates = words(language), calendar(language)
    yield from chain(own.function_words, own.fillers, own.common, own.negators.words)
    yield from chain(own.replies.yes, own.replies.no, own.replies.softeners, own.forgetting.words)
    yield from chain(*dates.months, *dates.weekdays, *dates.units.values(), *dates.relative.values(), dates.numbers)
    yield from chain(dates.this, dates.next, dates.last, dates.coming, dates.latest, *dates.preceding.values())
