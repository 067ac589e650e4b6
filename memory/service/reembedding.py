"""Embeds every memory again with another model: all remaining ones, then a full comparison, then one atomic switch.

Before the switch all parts use the old vectors, after it the new ones. Memories do not change otherwise, and the switch
happens only after old and new rows have been compared one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from memory.errors import Unavailable
from memory.model import Vector, VectorOrigin
from memory.ports import Embedder, Reembedding, ReembeddingStatus, Snapshots, StoredText

# The first pass embeds, the second finds nothing missing; more are needed only if somebody writes meanwhile.
LOOKS_MAX = 5
SAMPLE_TEXTS = 64  # embedded by a dry run to estimate the total time
RETRY_PAUSES_SECONDS = (1.0, 3.0, 10.0, 30.0)  # while an embedding server is busy or restarting

Advance: TypeAlias = Callable[[int, int], None]
"""Gets the memories done and their total."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would do. `seconds`: estimated from a sample, embedding only."""

    status: ReembeddingStatus
    wanted: VectorOrigin
    is_needed: bool
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """`status`: at the start. `is_needed`: the vectors were replaced by the wanted ones. `embedded`: memories that this
    run embedded, in `seconds`.
    """

    status: ReembeddingStatus
    wanted: VectorOrigin
    is_needed: bool
    embedded: int = 0
    seconds: float = 0.0


class Reembed:
    """One run. Methods raise `Unavailable`; nothing is lost then, and another run continues from there."""

    def __init__(self, store: Reembedding, embedder: Embedder, snapshots: Snapshots, *, wanted: VectorOrigin) -> None:
        self._store = store
        self._embedder = embedder
        self._snapshots = snapshots
        self._wanted = wanted

    async def estimate(self) -> Estimate:
        """Changes nothing."""
        status = await self._store.status()
        if not self._is_needed(status):
            return Estimate(status, self._wanted, is_needed=False)
        sample: list[StoredText] = []
        async for texts in self._store.remaining():
            sample += texts
            if len(sample) >= SAMPLE_TEXTS:
                break
        sample = sample[:SAMPLE_TEXTS]
        began_at = asyncio.get_running_loop().time()
        await self._vectors(sample)
        seconds_each = (asyncio.get_running_loop().time() - began_at) / max(1, len(sample))
        seconds = seconds_each * (status.memories - status.embedded)
        return Estimate(status, self._wanted, is_needed=True, seconds=seconds)

    async def run(self, *, advance: Advance, check_alone: Callable[[], Awaitable[None]]) -> Outcome:
        """`advance` gets the memories done and the total. `check_alone` raises if another process may write
        memories.
        """
        loop = asyncio.get_running_loop()
        began_at, embedded = loop.time(), 0
        before = await self._store.status()
        is_needed = self._is_needed(before)
        if is_needed:
            advance(before.embedded, before.memories)
            await self._store.begin()
            embedded = await self._embed_all(before, advance)
            await check_alone()
            await self._store.switch()
        if is_needed or not before.outdated:  # otherwise a copy may be that of an interrupted `migrate`
            await self._store.clear()
        await self._snapshots.erase_all()
        return Outcome(before, self._wanted, is_needed, embedded, loop.time() - began_at)

    def _is_needed(self, status: ReembeddingStatus) -> bool:
        return status.origin is not None and not status.origin.agrees_with(self._wanted)

    async def _embed_all(self, before: ReembeddingStatus, advance: Advance) -> int:
        async def embed(texts: Sequence[StoredText]) -> None:
            await self._store.put(texts, await self._vectors(texts))

        return await transferred(self._store, embed, before, advance)

    async def _vectors(self, texts: Sequence[StoredText]) -> Vector:
        wanted = [one.text for one in texts]
        for pause in RETRY_PAUSES_SECONDS:
            try:
                return await self._embedder.embed(wanted, is_urgent=False)
            except Unavailable:
                await asyncio.sleep(pause)
        return await self._embedder.embed(wanted, is_urgent=False)


async def transferred(
    store: Reembedding,
    transfer: Callable[[Sequence[StoredText]], Awaitable[None]],
    before: ReembeddingStatus,
    advance: Advance,
) -> int:
    """The number of transferred memories, once a full comparison has found no differences."""
    done = 0
    for _ in range(LOOKS_MAX):
        found_missing = False
        async for texts in store.remaining():
            found_missing = True
            await transfer(texts)
            done += len(texts)
            advance(min(before.embedded + done, before.memories), before.memories)
        if await store.remove_deleted() and not found_missing:
            return done
    raise Unavailable("milvus", "memories change while they are copied: stop whatever writes them")
