"""The content words of a text, and the words by which somebody may come back to it.

Content words are names, numbers, nouns; not pronouns, articles and auxiliaries. In scripts with spaces: words, roughly
stemmed. In Chinese: pairs of adjacent characters, and single characters that stand alone.

Specific words are names, numbers, dates and references, rather too many than too few: a capitalised word counts as a
name, also a German noun, and at the beginning of a sentence any capitalised word that carries content. Scripts without
capitals only show digits. Deterministic.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import chain

from memory.language.loader import Language, Phrases, words
from memory.language.phrases import HAN, cached_by_text, candidates, is_clitic, is_han, is_word, spellings, tokenize

# "Plan A", "room B", "A方案": a letter used as a name, not an article.
_LETTERED = re.compile(
    r"(?<=[a-zà-ÿ] )[A-HJ-Z](?![\w'’]|\.\s?\w)|"
    rf"(?<![A-Za-z])[A-Z](?=[{HAN}])|(?<=[{HAN}])[A-Z](?![A-Za-z])"
)
_SUFFIXES = ("ations", "ation", "ingly", "ings", "ing", "edly", "ers", "ies", "ied", "es", "ed", "er", "ly", "s", "e")
_STEM_CHARACTERS_MIN = 3
_SENTENCE_ENDS = (".", "!", "?", ":", "…")
_APOSTROPHES = ("'", "’")
# Whose function words count in every text: recall is tuned with them, and more languages share too many words.
_EVERYWHERE: tuple[Language, ...] = ("en", "de", "es", "zh")


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
        found |= pairs_of([run])
        run = ""
        is_contracted = position + 1 < len(tokens) and tokens[position + 1] == "n't"
        if is_kept and is_word(token) and not is_clitic(token) and not is_contracted:
            found.add(_stem(token) if token[0].isalpha() else token)
    return frozenset(found | pairs_of([run]))


def specific_words(text: str) -> frozenset[str]:
    """Names and tokens with digits, folded in case, without the punctuation around them."""
    found: set[str] = set()
    is_first = True
    for word in _spaced(text).split():
        bare = _bare(word)
        has_digits = any(character.isdigit() for character in bare)
        is_capitalised = len(bare) > 1 and bare[0].isupper()
        if has_digits or (is_capitalised and (not is_first or content_words(bare))):
            found.add(bare.casefold())
        if bare:
            is_first = word.endswith(_SENTENCE_ENDS)
    return frozenset(found)


def plain_words(text: str) -> frozenset[str]:
    """All words as `specific_words` writes them, parts of compounds too."""
    words = _spaced(text).split()
    whole = {_bare(word).casefold() for word in words}
    parts = {_bare(part).casefold() for word in words for part in word.replace("/", "-").split("-")}
    return frozenset((whole | parts) - {""})


def _spaced(text: str) -> str:
    """With spaces for Han characters, which are written without: a number between them is a word."""
    return text if text.isascii() else "".join(" " if is_han(character) else character for character in text)


def _bare(word: str) -> str:
    """Without punctuation and signs at both ends, and without what follows an apostrophe ("Sam's", "I'm")."""
    begin, end = 0, len(word)
    while begin < end and not word[begin].isalnum():
        begin += 1
    while end > begin and not word[end - 1].isalnum():
        end -= 1
    bare = word[begin:end]
    for apostrophe in _APOSTROPHES:
        bare = bare.partition(apostrophe)[0] or bare
    return bare


@cache
def function_words() -> frozenset[str]:
    """Function words that count in every text, in every spelling, except words with content in another language."""
    return _spelled(words(language).function_words for language in _EVERYWHERE) - _meaningful()


@cache
def _empty_words(languages: tuple[Language, ...]) -> frozenset[str]:
    """Function words and fillers ("now", "still"); for `languages` regardless of their meaning elsewhere."""
    fillers = _spelled(words(language).fillers for language in _EVERYWHERE)
    return (function_words() | fillers - _meaningful()).union(*map(_own_empty_words, languages))


def _own_empty_words(language: Language) -> frozenset[str]:
    own = words(language)
    return _spelled([own.function_words, own.fillers]) - _spelled([own.meaningful])


@cache
def _meaningful() -> frozenset[str]:
    return _spelled(words(language).meaningful for language in _EVERYWHERE)


def _spelled(lists: Iterable[Phrases]) -> frozenset[str]:
    return frozenset(token for word in chain(*lists) for tokens in spellings(word) for token in tokens)


def pairs_of(runs: Iterable[str]) -> set[str]:
    """Pairs of adjacent characters, and runs of a single one."""
    return {run[i : i + 2] for run in runs if run for i in range(max(len(run) - 1, 1))}


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _STEM_CHARACTERS_MIN:
            return word[: -len(suffix)]
    return word
