"""Copies every memory into a new collection, then a full comparison, then one atomic switch: to embed them again with
another model (`Reembed`), or, with the vectors that they have, for the present schema and index (`Migrate`).

Before the switch all parts use the old collection, after it the new one. Memories do not change otherwise, and the
switch happens only after old and new rows have been compared one by one. An interrupted run is continued by the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from memory.errors import BadSetting, Unavailable
from memory.model import Vector, VectorOrigin
from memory.ports import Embedder, Reembedding, ReembeddingStatus, Snapshots, StoredText

# The first pass copies, the second finds nothing missing; more are needed only if somebody writes meanwhile.
LOOKS_MAX = 5
SAMPLE_TEXTS = 64  # embedded by a dry run to estimate the total time
RETRY_PAUSES_SECONDS = (1.0, 3.0, 10.0, 30.0)  # while an embedding server is busy or restarting

Advance: TypeAlias = Callable[[int, int], None]
"""Gets the memories done and their total."""


@dataclass(frozen=True, slots=True)
class Switch:
    """What a run did, or would do. `status`: at the start. `wanted`: the vectors that the settings make. `copied`:
    memories that this run copied, in `seconds`; before a run, the seconds that embedding will take by a sample.
    """

    status: ReembeddingStatus
    wanted: VectorOrigin
    is_needed: bool
    copied: int = 0
    seconds: float = 0.0


class Migrate:
    """One run. Methods raise `Unavailable`; nothing is lost then, and another run continues from there."""

    def __init__(self, store: Reembedding, *, wanted: VectorOrigin) -> None:
        self._store = store
        self._wanted = wanted

    async def estimate(self) -> Switch:
        """Changes nothing."""
        status = await self._store.status()
        return Switch(status, self._wanted, is_needed=self._is_needed(status))

    async def run(self, *, advance: Advance, check_alone: Callable[[], Awaitable[None]]) -> Switch:
        """`advance` gets the memories done and the total. `check_alone` raises if another process may write memories.

        Raises `BadSetting` if the other kind of run is needed.
        """
        loop = asyncio.get_running_loop()
        began_at, copied = loop.time(), 0
        before = await self._store.status()
        is_needed = self._is_needed(before)
        if is_needed:
            self._refuse(before)
            advance(before.embedded, before.memories)
            await self._store.begin()
            copied = await self._copied(before, advance)
            await check_alone()
            await self._store.switch()
        if is_needed or not (before.outdated or self._has_other_vectors(before)):
            await self._store.clear()  # otherwise a copy may be that of an interrupted run of the other kind
        return Switch(before, self._wanted, is_needed, copied, loop.time() - began_at)

    def _is_needed(self, status: ReembeddingStatus) -> bool:
        return status.outdated is not None

    def _refuse(self, before: ReembeddingStatus) -> None:
        if self._has_other_vectors(before):
            raise BadSetting(
                f"the memories have vectors of {before.origin}, memory.embedding makes those of {self._wanted}: "
                "run `memproxy reembed`, which migrates as well"
            )

    def _has_other_vectors(self, status: ReembeddingStatus) -> bool:
        return status.origin is not None and not status.origin.agrees_with(self._wanted)

    async def _copy(self, texts: Sequence[StoredText]) -> None:
        await self._store.copy(texts)

    async def _copied(self, before: ReembeddingStatus, advance: Advance) -> int:
        """The number of copied memories, once a full comparison has found no differences."""
        done = 0
        for _ in range(LOOKS_MAX):
            found_missing = False
            async for texts in self._store.remaining():
                found_missing = True
                await self._copy(texts)
                done += len(texts)
                advance(min(before.embedded + done, before.memories), before.memories)
            if await self._store.remove_deleted() and not found_missing:
                return done
        raise Unavailable("milvus", "memories change while they are copied: stop whatever writes them")


class Reembed(Migrate):
    """Likewise, with other vectors."""

    def __init__(self, store: Reembedding, embedder: Embedder, snapshots: Snapshots, *, wanted: VectorOrigin) -> None:
        super().__init__(store, wanted=wanted)
        self._embedder = embedder
        self._snapshots = snapshots

    async def estimate(self) -> Switch:
        found = await super().estimate()
        if not found.is_needed:
            return found
        sample: list[StoredText] = []
        async for texts in self._store.remaining():
            sample += texts
            if len(sample) >= SAMPLE_TEXTS:
                break
        sample = sample[:SAMPLE_TEXTS]
        began_at = asyncio.get_running_loop().time()
        await self._vectors(sample)
        seconds_each = (asyncio.get_running_loop().time() - began_at) / max(1, len(sample))
        return replace(found, seconds=seconds_each * (found.status.memories - found.status.embedded))

    async def run(self, *, advance: Advance, check_alone: Callable[[], Awaitable[None]]) -> Switch:
        done = await super().run(advance=advance, check_alone=check_alone)
        await self._snapshots.erase_all()
        return done

    def _is_needed(self, status: ReembeddingStatus) -> bool:
        return self._has_other_vectors(status)

    def _refuse(self, before: ReembeddingStatus) -> None:
        """It migrates as well."""

    async def _copy(self, texts: Sequence[StoredText]) -> None:
        await self._store.put(texts, await self._vectors(texts))

    async def _vectors(self, texts: Sequence[StoredText]) -> Vector:
        wanted = [one.text for one in texts]
        for pause in RETRY_PAUSES_SECONDS:
            try:
                return await self._embedder.embed(wanted, is_urgent=False)
            except Unavailable:
                await asyncio.sleep(pause)
        return await self._embedder.embed(wanted, is_urgent=False)
