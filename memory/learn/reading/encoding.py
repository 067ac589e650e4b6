"""Packs the units of a message into token windows for the statement encoder, and maps tokens back to units.

A window is `<s> units </s>`, followed by `before </s>` if there was an answer before the message. A message that
does not fit is split into several windows, each of which repeats the last units of the previous one as context.
Training and production use the same function. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

WINDOW_TOKENS_MAX = 254  # for units; the encoder was trained with this length
UNIT_TOKENS_MAX = 120  # per unit; the rest is cut off
CONTEXT_TOKENS_MAX = 80  # repeated from the previous window
BEFORE_TOKENS_MAX = 48  # from the end of the assistant's answer
CLOSING = " .!。！"  # without the question mark, which distinguishes questions from statements

Encoded = tuple[Sequence[int], Sequence[tuple[int, int]]]
"""Token ids without special tokens, and the character offsets of each token."""


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Ids of the encoder's special tokens."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class UnitTokens:
    """The tokens `first` to `stop` of the window belong to unit `index` of the message."""

    index: int
    first: int
    stop: int
    offsets: Sequence[tuple[int, int]]
    is_context: bool  # judged in another window


@dataclass(frozen=True, slots=True)
class TokenWindow:
    ids: tuple[int, ...]
    segments: tuple[int, ...]
    units: tuple[UnitTokens, ...]


def windows_of(
    texts: Sequence[str], before: str, *, encode: Callable[[str], Encoded], special: SpecialTokens
) -> list[TokenWindow]:
    """Windows in which each of `texts` is judged exactly once. `before`: the assistant's last message, or ""."""
    encoded = [_cut(encode(text), UNIT_TOKENS_MAX) for text in texts]
    tail = list(encode(before)[0])[-BEFORE_TOKENS_MAX:] if before else []
    found: list[TokenWindow] = []
    first = 0
    while first < len(encoded):
        start = _context_start(encoded, first) if first else 0
        room = WINDOW_TOKENS_MAX - sum(len(ids) for ids, _ in encoded[start:first])
        stop = first
        while stop < len(encoded) and (stop == first or len(encoded[stop][0]) <= room):
            room -= len(encoded[stop][0])
            stop += 1
        found.append(_window(encoded, start, first, stop, tail if not start else [], special))
        first = stop
    return found


def pair_window(older: str, newer: str, *, encode: Callable[[str], Encoded], special: SpecialTokens) -> TokenWindow:
    """`<s> older </s> newer </s>`, each truncated to `UNIT_TOKENS_MAX`, without final punctuation.

    The training pairs have no full stop and statements from messages do, which would otherwise be a spurious feature.
    """
    first = (special.start, *_cut(encode(older.rstrip(CLOSING)), UNIT_TOKENS_MAX)[0], special.end)
    second = (*_cut(encode(newer.rstrip(CLOSING)), UNIT_TOKENS_MAX)[0], special.end)
    return TokenWindow((*first, *second), (0,) * len(first) + (1,) * len(second), ())


def _cut(encoded: Encoded, most: int) -> Encoded:
    ids, offsets = encoded
    return ids[:most], offsets[:most]


def _context_start(encoded: Sequence[Encoded], first: int) -> int:
    start, used = first, 0
    while start > 0 and used + len(encoded[start - 1][0]) <= CONTEXT_TOKENS_MAX:
        start -= 1
        used += len(encoded[start][0])
    return start


def _window(
    encoded: Sequence[Encoded], start: int, first: int, stop: int, tail: Sequence[int], special: SpecialTokens
) -> TokenWindow:
    ids = [special.start]
    placed: list[UnitTokens] = []
    for index in range(start, stop):
        tokens, offsets = encoded[index]
        placed.append(UnitTokens(index, len(ids), len(ids) + len(tokens), offsets, is_context=index < first))
        ids += tokens
    ids.append(special.end)
    segments = [0] * len(ids)
    if tail:
        ids += [*tail, special.end]
        segments += [1] * (len(tail) + 1)
    return TokenWindow(tuple(ids), tuple(segments), tuple(placed))
