"""Copies every memory into a new collection, with the present schema and an index for so many: all that remain, a full
comparison, one switch.

As with `reembedding`, the old collection stays in use until the switch, and an interrupted run continues. Vectors are
copied as they are: nothing is embedded again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memory.errors import BadSetting
from memory.model import VectorOrigin
from memory.ports import Reembedding, ReembeddingStatus
from memory.service.reembedding import Advance, transferred


@dataclass(frozen=True, slots=True)
class Migrated:
    """`status`: at the start. `wanted`: the vectors that the settings make, which migrating does not replace. `copied`:
    memories that this run copied, in `seconds`; a dry run copies none.
    """

    status: ReembeddingStatus
    wanted: VectorOrigin
    copied: int = 0
    seconds: float = 0.0


class Migrate:
    """One run. Methods raise `Unavailable`; nothing is lost then, and another run continues from there."""

    def __init__(self, store: Reembedding, *, wanted: VectorOrigin) -> None:
        self._store = store
        self._wanted = wanted

    async def estimate(self) -> Migrated:
        """Changes nothing."""
        return Migrated(await self._store.status(), self._wanted)

    async def run(self, *, advance: Advance, check_alone: Callable[[], Awaitable[None]]) -> Migrated:
        """`check_alone` raises if another process may write memories. Raises `BadSetting` if `reembed` is needed."""
        loop = asyncio.get_running_loop()
        began_at, copied = loop.time(), 0
        before = await self._store.status()
        has_wanted_vectors = before.origin is None or before.origin.agrees_with(self._wanted)
        if before.outdated:
            if not has_wanted_vectors:
                raise BadSetting(
                    f"the memories have vectors of {before.origin}, memory.embedding makes those of {self._wanted}: "
                    "run `memproxy reembed`, which migrates as well"
                )
            advance(before.embedded, before.memories)
            await self._store.begin()
            copied = await transferred(self._store, self._store.copy, before, advance)
            await check_alone()
            await self._store.switch()
        if has_wanted_vectors:  # otherwise a copy may be that of an interrupted `reembed`
            await self._store.clear()
        return Migrated(before, self._wanted, copied, loop.time() - began_at)
