"""Finds the words of a text by which somebody may come back to it: names, numbers, dates and references.

Lexical and rather too many than too few: a capitalised word counts as a name, also a German noun, and at the beginning
of a sentence any capitalised word that carries content. Scripts without capitals only show digits. Pure.
"""

from __future__ import annotations

from memory.language.content import content_words
from memory.language.phrases import is_han

_SENTENCE_ENDS = (".", "!", "?", ":", "…")
_APOSTROPHES = ("'", "’")


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
