"""The content words of a statement: names, numbers, nouns; not pronouns, articles and auxiliaries.

In scripts with spaces: words, roughly stemmed. In Chinese: pairs of adjacent characters, and single characters that
stand alone. Deterministic.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import chain

from memory.language.detection import candidates
from memory.language.loader import LANGUAGES, Language, Phrases, words
from memory.language.phrases import is_clitic, is_han, is_word, spellings, tokenize
from memory.language.text_cache import cached_by_text

# "Plan A", "room B", "A方案": a letter used as a name, not an article.
_LETTERED = re.compile(
    r"(?<=[a-zà-ÿ] )[A-HJ-Z](?![\w'’]|\.\s?\w)|"
    r"(?<![A-Za-z])[A-Z](?=[\u3400-\u9fff])|(?<=[\u3400-\u9fff])[A-Z](?![A-Za-z])"
)
_SUFFIXES = ("ations", "ation", "ingly", "ings", "ing", "edly", "ers", "ies", "ied", "es", "ed", "er", "ly", "s", "e")
_STEM_CHARACTERS_MIN = 3


@cached_by_text
def content_words(text: str) -> frozenset[str]:
    lettered = _LETTERED.findall(unicodedata.normalize("NFKC", text))
    return frozenset(letter.casefold() for letter in lettered) | content_of(tokenize(text).tokens, candidates(text))


def content_of(tokens: Sequence[str], languages: tuple[Language, ...], without: Collection[int] = ()) -> frozenset[str]:
    """Those of the tokens in any of these languages, except at the positions `without`."""
    empty = _empty_words(languages)
    found: set[str] = set()
    run = ""
    for position, token in enumerate(tokens):
        is_kept = position not in without and token not in empty
        if is_kept and is_han(token):
            run += token
            continue
        found |= _pairs(run)
        run = ""
        is_contracted = position + 1 < len(tokens) and tokens[position + 1] == "n't"
        if is_kept and is_word(token) and not is_clitic(token) and not is_contracted:
            found.add(_stem(token) if token[0].isalpha() else token)
    return frozenset(found | _pairs(run))


@cache
def function_words() -> frozenset[str]:
    """Function words of all languages, in every spelling, except words with content in another language."""
    return _spelled(words(language).function_words for language in LANGUAGES) - _meaningful()


@cache
def _empty_words(languages: tuple[Language, ...]) -> frozenset[str]:
    """Function words and fillers ("now", "still"); for `languages` regardless of their meaning elsewhere."""
    fillers = _spelled(words(language).fillers for language in LANGUAGES)
    return (function_words() | fillers - _meaningful()).union(*map(_own_empty_words, languages))


def _own_empty_words(language: Language) -> frozenset[str]:
    own = words(language)
    return _spelled([own.function_words, own.fillers]) - _spelled([own.meaningful])


@cache
def _meaningful() -> frozenset[str]:
    return _spelled(words(language).meaningful for language in LANGUAGES)


def _spelled(lists: Iterable[Phrases]) -> frozenset[str]:
    return frozenset(token for word in chain(*lists) for tokens in spellings(word) for token in tokens)


def _pairs(run: str) -> set[str]:
    return {run[i : i + 2] for i in range(max(len(run) - 1, 1))} if run else set()


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _STEM_CHARACTERS_MIN:
            return word[: -len(suffix)]
    return word
