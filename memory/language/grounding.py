"""Whether a text that a model wrote adds nothing to the texts that it was written from. Pure.

Lexical, and so only a check: a name is taken to be a word that is capitalised inside a sentence. German nouns are
capitalised too, so that a German text passes only if all its nouns stand in the sources.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.language import content_words, is_denied

_CAPITALISED_EVERYWHERE = frozenset(("I", "I'm", "I've", "I'd", "I'll"))
_ENDS = (".", "!", "?", ":", "。", "！", "？")
_EDGES = ".,;:!?()\"'“”’"


def adds_nothing(text: str, sources: Sequence[str], *, new_words_max: float) -> bool:
    """No name, number or denial that the sources do not have, and at most that share of content words is new."""
    written = "\n".join(sources).casefold()
    if any(word.casefold() not in written for word in _names_and_numbers(text)):
        return False
    if is_denied(text) and not any(is_denied(source) for source in sources):
        return False
    known = frozenset[str]().union(*(content_words(source) for source in sources))
    words = content_words(text)
    return bool(words & known) and len(words - known) <= new_words_max * len(words)


def _names_and_numbers(text: str) -> list[str]:
    """Words with digits, and capitalised words that begin no sentence."""
    found: list[str] = []
    begins = True
    for word in text.split():
        bare = word.strip(_EDGES)
        has_digits = any(character.isdigit() for character in bare)
        is_name = bare[:1].isupper() and not begins and bare not in _CAPITALISED_EVERYWHERE
        if has_digits or is_name:
            found.append(bare)
        begins = word.endswith(_ENDS)
    return found
