"""Secrets taken out of a text before it is written anywhere: the turn log, memories, evidence.

A pure function that the observer and the REST shell call before the append, so that the raw secret is in no file. What
counts as a secret stands in `secret_spans`; here is only what is put in its place, and by whose policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from memory.learn.secret_spans import SecretClass, secret_spans


class SecretPolicy(StrEnum):
    REDACT = "redact"  # a placeholder takes its place; what else the sentence says is learnt
    DROP = "drop"  # a placeholder takes its place, and nothing is learnt from the sentence
    ALLOW = "allow"


REDACT_ALL: Mapping[SecretClass, SecretPolicy] = MappingProxyType(dict.fromkeys(SecretClass, SecretPolicy.REDACT))
PLACEHOLDER = re.compile(r"\[(?P<how>redacted|withheld) [a-z ]{3,20}\]")


def redact(text: str, policy: Mapping[SecretClass, SecretPolicy] = REDACT_ALL) -> str:
    """`text` with each secret replaced by "[redacted …]" (or "[withheld …]" where the policy is to drop).

    Redacting twice changes nothing. Text without secrets comes back as the same object.
    """
    spans = _merged(
        [(start, end, kind) for start, end, kind in secret_spans(text) if policy.get(kind) is not SecretPolicy.ALLOW]
    )
    if not spans:
        return text
    parts: list[str] = []
    position = 0
    for start, end, kind in spans:
        how = "withheld" if policy.get(kind) is SecretPolicy.DROP else "redacted"
        parts += (text[position:start], f"[{how} {kind.value.replace('_', ' ')}]")
        position = end
    return "".join([*parts, text[position:]])


def _merged(spans: list[tuple[int, int, SecretClass]]) -> list[tuple[int, int, SecretClass]]:
    """In order, without overlap; overlapping ones become one."""
    merged: list[tuple[int, int, SecretClass]] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            first, last, named = merged[-1]
            merged[-1] = (first, max(last, end), named)
        else:
            merged.append((start, end, kind))
    return merged


__all__ = ["PLACEHOLDER", "REDACT_ALL", "SecretClass", "SecretPolicy", "redact"]
