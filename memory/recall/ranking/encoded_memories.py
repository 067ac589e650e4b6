"""Memories as bytes, and a sequence that decodes each memory when it is accessed.

Ranking works on arrays and accesses only the few memories that it returns, so a corpus read from a snapshot leaves the
others encoded: decoding 5,000 at once would occupy the interpreter for 15 ms, and the garbage collector for longer.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from typing import Any, overload

import msgspec
import numpy as np
import numpy.typing as npt

from memory.model import Memory

NOT_STORED = -1
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Memory)
_NAMES = tuple(field.name for field in fields(Memory))
_DEFAULTS: dict[str, Any] = {
    field.name: field.default if field.default_factory is MISSING else field.default_factory()
    for field in fields(Memory)
}


def encoded(memory: Memory) -> bytes:
    """MessagePack without the fields that have their default values; `decoded` returns an equal memory.

    Metadata may hold values that MessagePack cannot represent, such as lone surrogates and integers beyond 64 bits; it
    is then stored as JSON. Raises ValueError, TypeError or RecursionError for values that no store of ours returns.
    """
    given = {name: value for name in _NAMES if (value := getattr(memory, name)) != _DEFAULTS[name]}
    try:
        return _ENCODER.encode(given)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(msgspec.to_builtins(given), allow_nan=False).encode("ascii")


def decoded(stored: bytes) -> Memory:
    """Raises `msgspec.MsgspecError`, ValueError or `BadInput` for bytes that `encoded` did not produce."""
    if stored[:1] == b"{":
        return msgspec.convert(json.loads(stored), Memory)
    return _DECODER.decode(stored)


class Memories(Sequence[Memory]):
    """Memories by row, most of them still encoded. A decoded memory is kept."""

    __slots__ = ("_ends", "_read", "_stored", "_where")

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        self._read: dict[int, Memory] = dict(enumerate(memories))
        self._where = np.full(len(self._read), NOT_STORED, dtype=np.int32)  # row -> index of its bytes in `_stored`
        self._stored = b""
        self._ends = np.zeros(0, dtype=np.int64)

    @classmethod
    def of(cls, stored: bytes, sizes: npt.NDArray[np.int32]) -> Memories:
        """From the concatenated results of `encoded`, and their sizes."""
        memories = cls()
        memories._stored, memories._ends = stored, np.cumsum(sizes, dtype=np.int64)
        memories._where = np.arange(len(sizes), dtype=np.int32)
        return memories

    def __len__(self) -> int:
        return len(self._where)

    @overload
    def __getitem__(self, row: int) -> Memory: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Memory]: ...
    def __getitem__(self, row: int | slice) -> Memory | Sequence[Memory]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        row = range(len(self))[row]
        memory = self._read.get(row)
        if memory is None:
            memory = self._read[row] = decoded(self._piece(row))
        return memory

    def each(self) -> Iterator[Memory]:
        """All, in the order of rows. Those that this decodes are not kept, so that a thread may look at all of them."""
        for row in range(len(self)):
            yield self._read.get(row) or decoded(self._piece(row))

    def joined(self, others: Sequence[Memory], order: npt.NDArray[np.intp]) -> Memories:
        """The memories of both, reordered by `order`."""
        both = Memories()
        both._stored, both._ends = self._stored, self._ends
        both._where = np.concatenate((self._where, np.full(len(others), NOT_STORED, dtype=np.int32)))[order]
        rows = np.full(len(self) + len(others), -1)
        rows[order] = np.arange(len(order))
        known = {**self._read, **dict(enumerate(others, start=len(self)))}
        both._read = {row: memory for place, memory in known.items() if (row := int(rows[place])) >= 0}
        return both

    def encoded(self) -> tuple[bytes, npt.NDArray[np.int32]]:
        """All memories as bytes, concatenated, and the size of each. Cheap if none was added."""
        if len(self._where) == len(self._ends) and (self._where == np.arange(len(self._ends))).all():
            return self._stored, np.diff(self._ends, prepend=0).astype(np.int32)
        pieces = [
            self._piece(row) if where != NOT_STORED else encoded(self._read[row])
            for row, where in enumerate(self._where.tolist())
        ]
        return b"".join(pieces), np.fromiter(map(len, pieces), dtype=np.int32, count=len(pieces))

    def _piece(self, row: int) -> bytes:
        number = self._where[row]
        return self._stored[self._ends[number - 1] if number else 0 : self._ends[number]]
