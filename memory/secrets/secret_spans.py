"""Combines the four finders of secrets.

Keys and tokens by their form (`vendor_tokens`), numbers by their check digits (`id_numbers`), recovery phrases by the
lists of their words (`recovery_phrases`), and values announced by a label (`spoken`). Spans of placeholders only are
not returned. Linear in the length of the text.
"""

from __future__ import annotations

from memory.secrets.id_numbers import number_spans
from memory.secrets.plain_text import hidden, plain_text
from memory.secrets.recovery_phrases import recovery_phrase_spans
from memory.secrets.secret_classes import Span
from memory.secrets.spoken import spoken_spans
from memory.secrets.vendor_tokens import private_key_spans, vendor_token_spans
from memory.secrets.vocabulary import LabelMatches, vocabulary


def secret_spans(text: str) -> list[Span]:
    """Every secret, in the text as it is given; spans may overlap. Labelled ones come first, since a label determines
    the class best.
    """
    plain, words = plain_text(text), vocabulary()
    private_keys = list(private_key_spans(plain))
    plain = hidden(plain, private_keys)
    labels = LabelMatches(words.find(plain), words)
    found = (
        *private_keys,
        *spoken_spans(plain, labels, words),
        *recovery_phrase_spans(plain, words.function_words),
        *number_spans(plain, labels),
        *vendor_token_spans(plain, labels, words),
    )
    return [(*plain.source.original(start, end), kind) for start, end, kind in found]


__all__ = ["secret_spans"]
