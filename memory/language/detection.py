"""Guesses the language of a text: by script first, then by the number of words known to each language."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain

from memory.language.loader import Language, calendar, words
from memory.language.phrases import is_han, is_word, spellings, tokenize
from memory.language.text_cache import cached_by_text

SPACED: tuple[Language, ...] = ("en", "de", "es")  # with spaces between words; "en" wins ties


@cached_by_text
def candidates(text: str) -> tuple[Language, ...]:
    """Possible languages, most likely first; never empty. Several for ties and mixed texts."""
    tokens = [token for token in tokenize(text).tokens if is_word(token)]
    others = [token for token in tokens if not is_han(token)]
    han = len(tokens) - len(others)
    if not han or any(_is_kana(character) for character in text):
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
        for language in SPACED
    }
    best = max(scores.values())
    return tuple(language for language in SPACED if scores[language] == best)


@cache
def _vocabulary(language: str) -> frozenset[str]:
    """Words that are a phrase of their own in the language's files."""
    single = (tokens for phrase in _phrases(language) for tokens in spellings(phrase) if len(tokens) == 1)
    return frozenset(tokens[0] for tokens in single)


def _phrases(language: str) -> Iterator[str]:
    own, dates = words(language), calendar(language)
    yield from chain(own.function_words, own.fillers, own.common, own.negators.words)
    yield from chain(own.replies.yes, own.replies.no, own.replies.softeners, own.everything.words, own.limits.words)
    yield from chain(own.previous.anywhere, own.previous.closing, own.forgetting.words)
    yield from chain(*dates.months, *dates.weekdays, *dates.units.values(), *dates.relative.values(), dates.numbers)
    yield from chain(dates.this, dates.next, dates.last, dates.coming, dates.latest, *dates.preceding.values())


def _is_kana(character: str) -> bool:
    return "\u3041" <= character <= "\u30ff"
