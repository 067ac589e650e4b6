"""One user's memories as arrays: a question is answered by a few numpy operations.

Adding or removing touches one memory; the arrays that depend on all of them are rebuilt at the first question after a
change (about 20 ms for 10,000 memories), or by `prepare`. A corpus is not thread-safe, and never reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from memory.model import Record, Vector
from memory.ports import Tokens
from memory.recall.ranking.layout import Layout, LayoutArrays, lay_out
from memory.recall.ranking.rows import EncodedMemory, Floats, Names, Numbering, Places, Rows, read_off

ROWS_MIN = 64  # first size of the vector matrix


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of a corpus. Row `i` has vector `i`; the vector matrix may have spare rows."""

    rows: Rows
    names: Names
    vectors: Vector
    laid: LayoutArrays


class Corpus:
    """One user's memories. Cheap to change and to query."""

    def __init__(self, records: Iterable[Record] = (), *, dimension: int = 384, tokens: Tokens | None = None) -> None:
        """`tokens`: counts the line of each memory once; without it, whoever renders a note counts."""
        self._vectors: Vector = np.zeros((ROWS_MIN, dimension), dtype=np.float32)
        self._rows = Rows()
        self.names = Names()
        self._layout: Layout | None = None
        self._places: dict[str, int] = {}  # slot of each memory in `_rows`
        self._gone: list[int] = []  # slots of removed memories
        self._added: dict[str, EncodedMemory] = {}
        self._free: list[int] = []
        self._used = 0
        self._tokens = tokens
        for record in records:
            self.add(record)

    @classmethod
    def of(cls, contents: Contents, *, tokens: Tokens | None = None) -> Corpus:
        corpus = cls(dimension=contents.vectors.shape[1], tokens=tokens)
        corpus._rows, corpus.names, corpus._vectors = contents.rows, contents.names, contents.vectors
        corpus._used = len(contents.rows)
        corpus._layout = lay_out(contents.rows, contents.names, contents.vectors, laid=contents.laid)
        corpus._places = dict(corpus._layout.places)
        return corpus

    def __len__(self) -> int:
        return len(self._places) + len(self._added)

    def __contains__(self, memory_id: object) -> bool:
        return memory_id in self._places or memory_id in self._added

    @property
    def size_bytes(self) -> int:
        """Estimated memory usage: exact for vectors and arrays; objects count as their text plus a constant."""
        self.prepare()
        rows = self._rows
        text = 2 * int(rows.facts["characters"].sum()) + 5 * rows.tokens.values.nbytes + 1_600 * len(rows)
        return self._vectors.nbytes + text + 120 * len(self.names.terms)

    def add(self, record: Record) -> None:
        """Or replace the memory with its id. Raises ValueError for a vector of another dimension."""
        memory = record.memory
        if record.vector.shape != (self._vectors.shape[1],):
            raise ValueError(f"a vector of shape {self._vectors.shape[1:]} was expected, got {record.vector.shape}")
        self.remove(memory.id)
        slot = self._free_slot()
        self._vectors[slot] = record.vector
        self._added[memory.id] = read_off(memory, slot, self.names, tokens=self._tokens)
        self._layout = None

    def remove(self, memory_id: str) -> None:
        """An unknown id is ignored."""
        if (place := self._places.pop(memory_id, None)) is not None:
            slot = int(self._rows.facts["slot"][place])
            self._gone.append(place)
        elif (added := self._added.pop(memory_id, None)) is not None:
            slot = added.slot
        else:
            return
        self._vectors[slot] = 0.0
        self._free.append(slot)
        self._layout = None

    def similarities(self, vector: Vector, layout: Layout) -> Floats:
        """The cosine of every row with `vector`, shape `(rows,)`."""
        found: Floats = (self._vectors[: self._used] @ vector)[layout.facts["slot"]]
        return found

    def vectors(self, rows: Places) -> Vector:
        """A copy of those rows' vectors, shape `(rows, dimension)`."""
        found: Vector = self._vectors[self.prepare().facts["slot"][rows]]
        return found

    def prepare(self) -> Layout:
        """The layout, rebuilt if anything changed."""
        if self._layout is None:
            rows = self._rows.changed(self._gone, list(self._added.values()))
            self._rows, self.names = rows.tidied(self.names)
            self._gone, self._added = [], {}
            self._layout = lay_out(self._rows, self.names, self._vectors)
            self._places = dict(self._layout.places)
        return self._layout

    def contents(self) -> Contents:
        """The contents with an up-to-date layout; later changes of the corpus do not affect it."""
        layout = self.prepare()
        facts, slots, names = self._rows.facts.copy(), layout.facts["slot"], self.names
        facts["slot"] = np.arange(len(facts))
        copied = Names(Numbering(names.terms), Numbering(names.labels))
        return Contents(replace(self._rows, facts=facts), copied, self._vectors[slots], layout.laid)

    def _free_slot(self) -> int:
        if self._free:
            return self._free.pop()
        if self._used == len(self._vectors):
            self._vectors = with_room(self._vectors)
        self._used += 1
        return self._used - 1


def with_room(vectors: npt.NDArray[np.floating]) -> Vector:
    """The vectors as float32, with spare rows."""
    used, dimension = vectors.shape
    wider = np.empty((used + max(ROWS_MIN, used // 8), dimension), dtype=np.float32)
    wider[:used] = vectors
    return wider
