"""A memory as bytes, and a sequence of memories that are decoded when somebody looks at them.

Ranking works on arrays and looks at the few memories that it returns, so a corpus that was read from a snapshot leaves
the others as bytes: 5,000 decoded at once would keep the interpreter busy for 15 ms, and the garbage collector for
longer. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from typing import Any, overload

import msgspec

from memory.model import Memory

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Memory)
_NAMES = tuple(field.name for field in fields(Memory))
_DEFAULTS: dict[str, Any] = {
    field.name: field.default if field.default_factory is MISSING else field.default_factory()
    for field in fields(Memory)
}


def encoded(memory: Memory) -> bytes:
    """MessagePack without the fields that have their defaults; `decoded` gives an equal memory.

    Metadata may hold what MessagePack has no form for, lone surrogates and whole numbers beyond 64 bits: then it is
    JSON. Raises ValueError, TypeError or RecursionError for what no store of ours gives out.
    """
    given = {name: value for name in _NAMES if (value := getattr(memory, name)) != _DEFAULTS[name]}
    try:
        return _ENCODER.encode(given)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(msgspec.to_builtins(given), allow_nan=False).encode("ascii")


def decoded(stored: bytes) -> Memory:
    """Raises `msgspec.MsgspecError`, ValueError or `BadInput` for what `encoded` did not make."""
    if stored[:1] == b"{":
        return msgspec.convert(json.loads(stored), Memory)
    return _DECODER.decode(stored)


class Memories(Sequence[Memory]):
    """Memories, some of them still as bytes. Not safe for threads that change it; looking is."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[Memory | bytes] = ()) -> None:
        self._items: list[Memory | bytes] = list(items)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> Memory: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Memory]: ...
    def __getitem__(self, place: int | slice) -> Memory | Sequence[Memory]:
        if isinstance(place, slice):
            return Memories(self._items[place])
        item = self._items[place]
        if isinstance(item, bytes):
            item = self._items[place] = decoded(item)
        return item

    def joined(self, others: Iterable[Memory], order: Iterable[int]) -> Memories:
        """These and the others, in that order of places."""
        items = [*self._items, *others]
        return Memories(items[place] for place in order)

    def encoded(self) -> list[bytes]:
        """All of them as bytes; what was not decoded costs nothing."""
        return [item if isinstance(item, bytes) else encoded(item) for item in self._items]


__all__ = ["Memories", "decoded", "encoded"]
