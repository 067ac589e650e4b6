"""Combines the four finders of secrets.

Keys and tokens by their form (`vendor_tokens`), numbers by their check digits (`id_numbers`), recovery phrases by the
lists of their words (`recovery_phrases`), and values announced by a label (`spoken`). Spans of placeholders only are
not returned. Linear in the length of the text.
"""

from __future__ import annotations

from collections.abc import Callable

from memory.secrets.id_numbers import number_spans
from memory.secrets.plain_text import hidden, plain_text
from memory.secrets.recovery_phrases import recovery_phrase_spans
from memory.secrets.secret_classes import Span
from memory.secrets.spoken import spoken_spans
from memory.secrets.vendor_tokens import KEY_BEGINS, private_key_spans, vendor_token_spans
from memory.secrets.vocabulary import LabelMatches, vocabulary

SLICE_CHARACTERS = 4_096
AROUND_CHARACTERS = 768  # before and behind a slice: more than a token is long, and than a label reaches


def secret_spans(text: str, pause: Callable[[], None] = lambda: None) -> list[Span]:
    """Every secret, in the text as it is given; spans may overlap. Labelled ones come first, since a label determines
    the class best.

    A long text is looked through in slices, each with some of the text around it, with a `pause` between two of them.
    """
    keys = list(private_key_spans(text)) if KEY_BEGINS in text else []
    text = hidden(text, keys)
    found = [*keys, *_found_in(text[: SLICE_CHARACTERS + AROUND_CHARACTERS], 0, SLICE_CHARACTERS)]
    for start in range(SLICE_CHARACTERS, len(text), SLICE_CHARACTERS):
        pause()
        begin, end = start - AROUND_CHARACTERS, start + SLICE_CHARACTERS
        around = _found_in(text[begin : end + AROUND_CHARACTERS], AROUND_CHARACTERS, end - begin)
        found += [(begin + first, begin + last, kind) for first, last, kind in around]
    return found


def _found_in(text: str, begin: int, end: int) -> list[Span]:
    """Those that begin in this range."""
    plain, words = plain_text(text), vocabulary()
    labels = LabelMatches(words.find(plain), words)
    found = (
        *spoken_spans(plain, labels, words),
        *recovery_phrase_spans(plain, words.function_words),
        *number_spans(plain, labels),
        *vendor_token_spans(plain, labels, words),
    )
    spans = ((*plain.source.original(start, stop), kind) for start, stop, kind in found)
    return [span for span in spans if begin <= span[0] < end]
