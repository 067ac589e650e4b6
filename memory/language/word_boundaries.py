"""Finds text at word boundaries: whole words and whole numbers only.

Applies to scripts with upper and lower case, which all separate words by spaces; a Chinese name stands directly
between other characters. Pure.
"""

from __future__ import annotations


def continues_word(text: str, at: int, step: int) -> bool:
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
        if not (continues_word(text, at, -1) or continues_word(text, at + len(words) - 1, 1)):
            found.append(at)
        at = text.find(words, at + 1)
    return found


def _is_cased(character: str) -> bool:
    return character.isalpha() and character.lower() != character.upper()


__all__ = ["continues_word", "whole_word_positions"]
