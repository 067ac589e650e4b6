"""The memories of all users, on their way from the vectors of one model to those of another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memory.model import Vector, VectorOrigin


@dataclass(frozen=True, slots=True)
class StoredText:
    """A memory as it is stored, of any user and status, even one that we could not read. `row`: all but the vector."""

    id: str
    content: str
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Standing:
    """What there is. `origin` of the vectors that parts find, None where nothing is stored yet; `memories` with them.

    `embedded`: memories that an earlier attempt has embedded for the wanted origin already.
    """

    origin: VectorOrigin | None
    memories: int = 0
    embedded: int = 0


class Reembedding(Protocol):
    """New vectors grow beside the old ones, which parts go on to find, until `switch`. Raises `Unavailable`.

    Killed at any point, whoever comes next finds all memories, with the old vectors or with the new ones, never with
    both, and goes on where it was. Only one caller at a time.
    """

    async def standing(self) -> Standing:
        """Changes nothing."""
        ...

    async def begin(self) -> None:
        """Make room for the new vectors, or find those of an earlier attempt; others that nobody finds are cleared."""
        ...

    def remaining(self) -> AsyncIterator[Sequence[StoredText]]:
        """Memories that are not embedded yet, or were written since, in the order of their ids, some hundred at a time.

        Each is looked at once. Before `begin`, these are all of them.
        """
        ...

    async def put(self, texts: Sequence[StoredText], vectors: Vector) -> None:
        """Keep them durably with these vectors, all else as it is. `vectors` has shape `(len(texts), dimension)`."""
        ...

    async def settle(self) -> bool:
        """Take out what was deleted since it was embedded; whether there are now as many as are to be found."""
        ...

    async def switch(self) -> None:
        """From here on every part finds the new vectors: in one step, wholly or not at all."""
        ...

    async def clear(self) -> None:
        """Drop whatever parts do not find. Raises `Unavailable`, and keeps it, where it holds more."""
        ...


__all__ = ["Reembedding", "Standing", "StoredText"]
