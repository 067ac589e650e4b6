"""Secrets taken out of a text before it is written anywhere: the turn log, memories, evidence.

A pure function that the observer and the REST shell call before the append, so that the raw secret is in no file. What
counts as a secret stands in `secret_spans`; here is only what is put in its place, by the policy of its class. It must
never let a part of a secret through, nor change a word of a text that holds none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from memory.errors import NotRecordable
from memory.secrets.plain_text import PLACEHOLDER
from memory.secrets.secret_classes import SecretClass, Span
from memory.secrets.secret_spans import secret_spans


class SecretPolicy(StrEnum):
    REDACT = "redact"  # a placeholder takes its place; what else the sentence says is learnt
    DROP = "drop"  # a placeholder takes the whole text's place: nothing of it is recorded or learnt
    ALLOW = "allow"  # it is recorded, and learnt like anything else


RECORDED_CHARACTERS_MAX = 65_536  # of one message: nobody says more, and looking for secrets takes time in proportion
ROUNDS_MAX = 8  # a placeholder may show what stood behind it; each round leaves less that can be found
WORD_CHARACTERS_MAX = 512  # that a cut leaves out, lest half a secret be seen
_WORD_AT_END = re.compile(rf"\S{{0,{WORD_CHARACTERS_MAX}}}\Z")
_WORD_AT_START = re.compile(rf"\S{{0,{WORD_CHARACTERS_MAX}}}")
_LEFT_OUT = "\n[…]\n"

REDACT_ALL: Mapping[SecretClass, SecretPolicy] = MappingProxyType(dict.fromkeys(SecretClass, SecretPolicy.REDACT))


def redact(text: str, policy: Mapping[SecretClass, SecretPolicy] = REDACT_ALL) -> str:
    """`text` with each secret replaced by "[redacted …]"; "[withheld …]" and nothing else if one's policy is to drop.

    A class that `policy` does not name is redacted. Redacting twice changes nothing. Text without secrets comes back as
    the same object.
    """
    for _ in range(ROUNDS_MAX):
        spans = [span for span in secret_spans(text) if policy.get(span[2]) is not SecretPolicy.ALLOW]
        if not spans:
            break
        dropped = [kind for _, _, kind in spans if policy.get(kind) is SecretPolicy.DROP]
        if dropped:
            return _placeholder("withheld", min(dropped))
        text = _replaced(text, spans)
    return text


def recordable(
    text: str,
    *,
    policy: Mapping[SecretClass, SecretPolicy] = REDACT_ALL,
    characters_max: int = RECORDED_CHARACTERS_MAX,
) -> str:
    """What may be written of a text: as `redact` leaves it, and of a very long one its beginning and its end.

    Of what lies between these nothing is written, nor is it looked at. The cuts fall on white space and never within a
    private key, so that no half of a secret is left unseen. Raises `NotRecordable` where looking failed, which is a
    fault of ours: better a text that is lost than a secret that is written.
    """
    try:
        return _recordable(text, policy, characters_max)
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise NotRecordable(type(error).__name__).with_traceback(error.__traceback__) from None


def _recordable(text: str, policy: Mapping[SecretClass, SecretPolicy], characters_max: int) -> str:
    if len(text) <= characters_max:
        return redact(text, policy)
    half = characters_max // 2
    head, tail = text[:half], text[-half:]
    if head.rfind("-----BEGIN") > head.rfind("-----END"):
        head = head[: head.rfind("-----BEGIN")]
    word_at_end = _WORD_AT_END.search(head, max(0, len(head) - WORD_CHARACTERS_MAX))
    head = head[: word_at_end.start()] if word_at_end else head
    begin, end = tail.find("-----BEGIN"), tail.find("-----END")
    if end >= 0 and not 0 <= begin < end:
        tail = tail[end:].partition("\n")[2]
    else:
        word_at_start = _WORD_AT_START.match(tail)
        tail = tail[word_at_start.end() :] if word_at_start else tail
    kept = [redact(head, policy), redact(tail, policy)]
    withheld = [part for part in kept if part.startswith("[withheld ") and PLACEHOLDER.fullmatch(part)]
    return withheld[0] if withheld else _LEFT_OUT.join(kept)


def _placeholder(how: str, kind: SecretClass) -> str:
    return f"[{how} {kind.value.replace('_', ' ')}]"


def _replaced(text: str, spans: list[Span]) -> str:
    parts: list[str] = []
    position = 0
    for start, end, kind in _merged(spans):
        parts += (text[position:start], _placeholder("redacted", kind))
        position = end
    return "".join([*parts, text[position:]])


def _merged(spans: list[Span]) -> list[Span]:
    """In order, without overlap; overlapping ones become one."""
    merged: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            first, last, named = merged[-1]
            merged[-1] = (first, max(last, end), named)
        else:
            merged.append((start, end, kind))
    return merged


__all__ = [
    "PLACEHOLDER",
    "RECORDED_CHARACTERS_MAX",
    "REDACT_ALL",
    "SecretClass",
    "SecretPolicy",
    "recordable",
    "redact",
]
