"""Combines the three finders of secrets.

Keys and tokens by their form (`vendor_tokens`), numbers by their check digits (`id_numbers`), and values announced by a
label (`spoken`). Spans of placeholders only are not returned. Linear in the length of the text.
"""

from __future__ import annotations

from memory.secrets.id_numbers import number_spans
from memory.secrets.plain_text import hidden, plain_text
from memory.secrets.secret_classes import Span
from memory.secrets.spoken import spoken_spans
from memory.secrets.vendor_tokens import private_key_spans, vendor_token_spans
from memory.secrets.vocabulary import LabelMatches, vocabulary


def secret_spans(text: str) -> list[Span]:
    """Every secret; spans may overlap. Labelled ones come first, since a label determines the class best."""
    plain, words = plain_text(text), vocabulary()
    private_keys = list(private_key_spans(plain))
    plain = hidden(plain, private_keys)
    labels = LabelMatches(words.find(plain))
    return [
        *private_keys,
        *spoken_spans(plain, labels, words),
        *number_spans(plain, labels),
        *vendor_token_spans(plain, words.example_words),
    ]


__all__ = ["secret_spans"]
