"""Removes secrets from a text before it is stored anywhere: turn log, memories, evidence.

Pure functions that the observer and the REST API call before storing, so that no file contains the secret. Secrets are
found as keys and tokens by their form (`vendor_tokens`), as numbers by their check digits (`id_numbers`), as recovery
phrases by the lists of their words (`recovery_phrases`), and as values that a label announces (`spoken`), and are
replaced according to the policy of their class. No part of a secret may remain, and a text without secrets is not
changed. Linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from types import MappingProxyType

from memory.errors import NotRecordable
from memory.secrets.id_numbers import number_spans
from memory.secrets.normalised import replaced
from memory.secrets.plain_text import PLACEHOLDER, hidden, plain_text
from memory.secrets.recovery_phrases import recovery_phrase_spans
from memory.secrets.secret_classes import SecretClass, Span
from memory.secrets.spoken import spoken_spans
from memory.secrets.vendor_tokens import private_key_spans, vendor_token_spans
from memory.secrets.vocabulary import LabelMatches, vocabulary


class SecretPolicy(StrEnum):
    REDACT = "redact"  # replaced by a placeholder; the rest of the sentence is learnt
    DROP = "drop"  # the whole text is replaced: nothing of it is recorded or learnt
    ALLOW = "allow"  # recorded and learnt like any other text


# Of one message: nobody types more, and finding secrets takes time proportional to the length.
RECORDED_CHARACTERS_MAX = 65_536
ROUNDS_MAX = 8  # a replacement may expose another secret; each round leaves fewer
WORD_CHARACTERS_MAX = 512  # maximum part of a word dropped at a cut, so that no half of a secret remains
SLICE_CHARACTERS = 4_096
AROUND_CHARACTERS = 768  # before and behind a slice: more than a token is long, and than a label reaches
_WORD_AT_END = re.compile(rf"\S{{0,{WORD_CHARACTERS_MAX}}}\Z")
_WORD_AT_START = re.compile(rf"\S{{0,{WORD_CHARACTERS_MAX}}}")
_LEFT_OUT = "\n[…]\n"

REDACT_ALL: Mapping[SecretClass, SecretPolicy] = MappingProxyType(dict.fromkeys(SecretClass, SecretPolicy.REDACT))


def redact(
    text: str, policy: Mapping[SecretClass, SecretPolicy] = REDACT_ALL, pause: Callable[[], None] = lambda: None
) -> str:
    """`text` with each secret replaced by "[redacted …]", or only "[withheld …]" if the policy of one is `drop`.

    Classes missing in `policy` are redacted. `pause`: called between two slices of a long
    text. Idempotent. Text without secrets is returned as the same object.
    """
    for _ in range(ROUNDS_MAX):
        spans = [span for span in secret_spans(text, pause) if policy.get(span[2]) is not SecretPolicy.ALLOW]
        if not spans:
            break
        dropped = [kind for _, _, kind in spans if policy.get(kind) is SecretPolicy.DROP]
        if dropped:
            return _placeholder("withheld", min(dropped))
        text = replaced(text, ((start, end, _placeholder("redacted", kind)) for start, end, kind in _merged(spans)))
    return text


def recordable(
    text: str,
    *,
    policy: Mapping[SecretClass, SecretPolicy] = REDACT_ALL,
    characters_max: int = RECORDED_CHARACTERS_MAX,
    pause: Callable[[], None] = lambda: None,
) -> str:
    """The text as it may be stored: redacted, and of a very long one only the beginning and the end.

    The middle is neither stored nor searched. Cuts are made at white space and never inside a private key, so that no
    half of a secret remains. Raises `NotRecordable` if the search fails: losing a text is better than storing a secret.
    """
    try:
        return _recordable(text, partial(redact, policy=policy, pause=pause), characters_max)
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise NotRecordable(type(error).__name__).with_traceback(error.__traceback__) from None


def _recordable(text: str, without_secrets: Callable[[str], str], characters_max: int) -> str:
    if len(text) <= characters_max:
        return without_secrets(text)
    half = characters_max // 2
    head, tail = text[:half], text[-half:]
    if head.rfind("-----BEGIN") > head.rfind("-----END"):
        head = head[: head.rfind("-----BEGIN")]
    head = head[: _WORD_AT_END.search(head, max(0, len(head) - WORD_CHARACTERS_MAX)).start()]  # type: ignore[union-attr]  # matches "" at least
    begin, end = tail.find("-----BEGIN"), tail.find("-----END")
    if end >= 0 and not 0 <= begin < end:
        tail = tail[end:].partition("\n")[2]
    else:
        tail = tail[_WORD_AT_START.match(tail).end() :]  # type: ignore[union-attr]  # likewise
    kept = [without_secrets(head), without_secrets(tail)]
    withheld = [part for part in kept if part.startswith("[withheld ") and PLACEHOLDER.fullmatch(part)]
    return withheld[0] if withheld else _LEFT_OUT.join(kept)


def _placeholder(how: str, kind: SecretClass) -> str:
    return f"[{how} {kind.value.replace('_', ' ')}]"


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            first, last, named = merged[-1]
            merged[-1] = (first, max(last, end), named)
        else:
            merged.append((start, end, kind))
    return merged


def secret_spans(text: str, pause: Callable[[], None] = lambda: None) -> list[Span]:
    """Every secret, in the text as it is given; spans may overlap. Labelled ones come first, since a label determines
    the class best.

    A long text is looked through in slices, each with some of the text around it, with a `pause` between two of them.
    """
    keys = list(private_key_spans(text))
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
