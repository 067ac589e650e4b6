"""Encodes a corpus as one blob, so that a returning user's memories can be ranked within milliseconds.

The blob holds everything derived from the memories, the arrays that are expensive to compute, the vectors in 16 bits,
and the memories as bytes that are decoded on access. It names its user, revision and `stamp` (the versions that it
depends on) and ends in a checksum over all. A blob that differs in any of these is refused, never repaired. Pure.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from memory.ports import Tokens
from memory.recall.ranking.corpus import Contents, Corpus, with_room
from memory.recall.ranking.layout import LayoutArrays, numbered
from memory.recall.ranking.rows import FACTS, KEYS, Memories, Names, Numbering, Ragged, Rows

MAGIC = b"memproxy snapshot"
FORMAT = 2  # version of the blob's format; the stamp covers how its contents are made
BODY_FROM = len(MAGIC) + 1 + 4  # after format number and checksum
NAMES_OTHERS = KEYS[1:]
VECTORS = np.dtype("<f2")  # 8 bits change ranks, 16 do not: see docs/adr/0012-snapshots-of-working-sets.md


class UnusableSnapshot(Exception):
    """`torn`: damaged or incomplete; `foreign`: of others; `outdated`: made by another version, model or ranking."""

    def __init__(self, why: Literal["torn", "foreign", "outdated"]) -> None:
        super().__init__(f"the snapshot is {why}")
        self.why = why


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A corpus as of an even (settled) revision of its user."""

    revision: int
    corpus: Corpus


class _Stored(msgspec.Struct, array_like=True, frozen=True):
    """The whole blob; arrays as bytes, in the order of `encode` and with the types in `_KINDS`."""

    user_id: str
    stamp: bytes
    revision: int
    dimension: int
    ids: list[str]
    names: list[list[str]]  # of each further one of `KEYS`, each once; an array holds each row's number
    terms: list[str]
    labels: list[str]
    memories: memoryview
    arrays: list[memoryview]


_DECODER = msgspec.msgpack.Decoder(_Stored)
_KINDS = (FACTS, *map(np.dtype, ("i4 " * 8 + "f4 i8 f4").split()), VECTORS)


def encode(contents: Contents, *, revision: int, user_id: str, stamp: bytes) -> bytes:
    """Raises ValueError, TypeError or RecursionError for values that no store of ours returns."""
    rows, names = contents.rows, contents.names
    memories, sizes = rows.memories.encoded()
    columns = [numbered(rows.keys[key]) for key in NAMES_OTHERS]
    laid, tokens = contents.laid, rows.tokens
    arrays: list[npt.NDArray[Any]] = [rows.facts, sizes, *(one for one, _ in columns), tokens.values, tokens.sizes]
    arrays += [laid.posting_rows, laid.posting_counts, laid.posting_starts, laid.window_norms, contents.vectors]
    stored = _Stored(
        user_id=user_id,
        stamp=stamp,
        revision=revision,
        dimension=contents.vectors.shape[1],
        ids=rows.ids,
        names=[list(found) for _, found in columns],
        terms=list(names.terms),
        labels=list(names.labels),
        memories=memoryview(memories),
        arrays=[
            np.ascontiguousarray(array, dtype=kind).view(np.uint8).reshape(-1).data
            for array, kind in zip(arrays, _KINDS, strict=True)
        ],
    )
    body = msgspec.msgpack.encode(stored)
    return b"".join((MAGIC, bytes([FORMAT]), zlib.crc32(body).to_bytes(4, "little"), body))


def decode(blob: bytes, *, user_id: str, stamp: bytes, tokens: Tokens | None = None) -> Snapshot:
    """Raises `UnusableSnapshot`. About 1 ms for 500 memories, 10 ms for 5,000."""
    if not blob.startswith(MAGIC):
        raise UnusableSnapshot("torn" if MAGIC.startswith(blob) else "foreign")
    body = memoryview(blob)[BODY_FROM:]
    if zlib.crc32(body) != int.from_bytes(blob[BODY_FROM - 4 : BODY_FROM], "little"):
        raise UnusableSnapshot("torn")
    if blob[len(MAGIC)] != FORMAT:
        raise UnusableSnapshot("outdated")
    try:
        stored = _DECODER.decode(body)
    except msgspec.MsgspecError:
        raise UnusableSnapshot("outdated") from None
    if stored.user_id != user_id:
        raise UnusableSnapshot("foreign")
    if stored.stamp != stamp:
        raise UnusableSnapshot("outdated")
    return Snapshot(stored.revision, Corpus.of(_contents(stored), tokens=tokens))


def _contents(stored: _Stored) -> Contents:
    """Copies the arrays, so that the blob can be freed: half of it are vectors, which are needed in 32 bits."""
    arrays = [np.frombuffer(part, dtype=kind) for part, kind in zip(stored.arrays, _KINDS, strict=True)]
    vectors = with_room(arrays.pop().reshape(len(stored.ids), stored.dimension))
    facts, sizes, *rest = map(np.copy, arrays)
    columns, (tokens, token_sizes, *laid) = rest[: len(NAMES_OTHERS)], rest[len(NAMES_OTHERS) :]
    held = zip(stored.names, columns, strict=True)
    named = ([names[number] for number in numbers.tolist()] for names, numbers in held)
    keys = {"id": stored.ids, **dict(zip(NAMES_OTHERS, named, strict=True))}
    rows = Rows(keys, Memories.of(bytes(stored.memories), sizes), facts, Ragged(tokens, token_sizes))
    names = Names(*(Numbering.listed(names) for names in (stored.terms, stored.labels)))
    return Contents(rows, names, vectors, LayoutArrays(*laid))
