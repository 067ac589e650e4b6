"""The port for replacing all vectors by those of another model, or the whole set by one of the present form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from memory.model import Vector, VectorOrigin


@dataclass(frozen=True, slots=True)
class StoredText:
    """A memory as stored, of any user and status, even one that cannot be decoded. `row`: all fields but the vector.

    `text`: what it is embedded by.
    """

    id: str
    text: str
    row: Mapping[str, Any]


class Outdated(StrEnum):
    """Why the store should be migrated. `SCHEMA`: it has that of an earlier release, which parts refuse. `INDEX`: its
    index is made for fewer memories, which makes searches slow.
    """

    SCHEMA = "schema"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class ReembeddingStatus:
    """The state of the store. `origin`: of the vectors in use, None if nothing is stored; `memories`: their number.

    `embedded`: memories that an earlier attempt has already embedded, or copied. `outdated`: None if the store has the
    present form.
    """

    origin: VectorOrigin | None
    memories: int = 0
    embedded: int = 0
    outdated: Outdated | None = None


class Reembedding(Protocol):
    """Builds the new vectors next to the old ones, which stay in use until `switch`. Raises `Unavailable`.

    After a crash at any point, all memories have either their old or their new vectors, never a mix, and another run
    continues. Only one caller at a time.
    """

    async def status(self) -> ReembeddingStatus:
        """The current state; changes nothing."""

    async def begin(self) -> None:
        """Create the storage for the new vectors, or find that of an earlier attempt; other leftovers are deleted."""

    def remaining(self) -> AsyncIterator[Sequence[StoredText]]:
        """Memories that are not embedded yet, or were changed since, ordered by id, a few hundred at a time.

        Each is returned once. Before `begin`, these are all memories.
        """

    async def put(self, texts: Sequence[StoredText], vectors: Vector) -> None:
        """Store these vectors durably, all other fields unchanged. `vectors` has shape `(len(texts), dimension)`."""

    async def copy(self, texts: Sequence[StoredText]) -> None:
        """Store these durably, with the vectors that they have, which must be of the wanted origin."""

    async def remove_deleted(self) -> bool:
        """Remove memories deleted since they were embedded; whether old and new have the same number of memories
        now.
        """

    async def switch(self) -> None:
        """Let all parts use the new vectors from now on, atomically."""

    async def clear(self) -> None:
        """Delete unused data. Raises `Unavailable` and deletes nothing if it holds more memories than the data in
        use.
        """
