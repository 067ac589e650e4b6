"""Finds text at word boundaries: whole words and whole numbers only.

Applies to scripts with upper and lower case, which all separate words by spaces; a Chinese name stands directly
between other characters. Pure.
"""

from __future__ import annotations

import unicodedata

_PLAIN_QUOTES = str.maketrans("’‘“”", "''\"\"")


def _continues_word(text: str, at: int, step: int) -> bool:
    """Whether the word or number at `at` continues at its neighbour, `step` (1 or -1) away."""
    beside = at + step
    if not 0 <= beside < len(text):
        return False
    one, other = text[at], text[beside]
    return (one.isdigit() and other.isdigit()) or (_is_cased(one) and _is_cased(other))


def whole_word_positions(words: str, text: str) -> list[int]:
    """The positions of `words` in the text, exactly as written, at word boundaries."""
    found: list[int] = []
    at = text.find(words) if words else -1
    while at >= 0:
        if not (_continues_word(text, at, -1) or _continues_word(text, at + len(words) - 1, 1)):
            found.append(at)
        at = text.find(words, at + 1)
    return found


def as_typed(words: str, quote: str) -> str:
    """The part of the quote that equals `words`, ignoring case, width and white space; "" if there is none.

    Matches whole words and numbers: "5" does not match "15", nor "Al" "really".
    """
    sought = "".join(_folded(character) for character in words)
    letters = [(_folded(character), index) for index, character in enumerate(quote)]
    text = "".join(folded for folded, _ in letters)
    places = [index for folded, index in letters for _ in folded]
    at = text.find(sought) if sought else -1
    while at >= 0:
        first, last = places[at], places[at + len(sought) - 1]
        if not (_continues_word(quote, first, -1) or _continues_word(quote, last, 1)):
            return quote[first : last + 1]
        at = text.find(sought, at + 1)
    return ""


def _folded(character: str) -> str:
    return "".join(unicodedata.normalize("NFKC", character.translate(_PLAIN_QUOTES)).casefold().split())


def _is_cased(character: str) -> bool:
    return character.isalpha() and character.lower() != character.upper()
