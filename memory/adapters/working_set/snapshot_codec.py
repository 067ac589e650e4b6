"""Working sets on their way to the port of snapshots and back: coded in a thread, counted, and never in a chat's way.

Whatever is the matter with a snapshot, a chat goes on without it: an unusable one is erased, since who finds none makes
a new one; a disk that is full or gone is counted, and told once until it is back. Only `erase` raises, for what was
forgotten must not stay. No word of a memory gets into a log.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from concurrent.futures import Executor
from functools import lru_cache, partial
from types import ModuleType

import structlog

from memory.errors import Unavailable
from memory.language import function_words
from memory.model import VectorOrigin
from memory.model import memories as model_of_memories
from memory.ports import Snapshots, Tokens
from memory.recall.notes import injection
from memory.recall.ranking import concepts, corpus, encoded_memories, layout, lexical, rows, snapshot, synonyms, wording
from memory.recall.ranking.corpus import Contents
from memory.recall.ranking.snapshot import Snapshot, UnusableSnapshot, decode, encode
from memory.recall.ranking.weights import NeighbourWeights
from memory.runtime.metrics import Metrics

# What a text is read and laid out by: with other code, what is in a snapshot would not be what we would read now.
READING: tuple[ModuleType, ...] = (
    concepts,
    corpus,
    injection,
    layout,
    lexical,
    encoded_memories,
    model_of_memories,
    rows,
    snapshot,
    synonyms,
    wording,
)

COUNTED = "kayak antidisestablishmentarianism $10,000 2026-01-31 Straßenbahnhaltestelle 北京烤鸭 años Zürich 🛶"

log = structlog.get_logger(__name__)


def stamp_of(*, origin: VectorOrigin, neighbours: NeighbourWeights, tokens: Tokens | None = None) -> bytes:
    """What a snapshot depends on beside its memories: the code, the embedding model, the ranking's neighbours, and how
    `tokens` counts, as the count of a few words shows.
    """
    digest = hashlib.sha256(_code())
    counted = None if tokens is None else [tokens(word) for word in COUNTED.split()]
    digest.update(repr((origin, neighbours.next, neighbours.next_but_one, counted)).encode())
    return digest.digest()


@lru_cache(maxsize=1)
def _code() -> bytes:
    digest = hashlib.sha256(repr(sorted(function_words())).encode())
    for module in READING:
        digest.update(hashlib.sha256(inspect.getsource(module).encode()).digest())
    return digest.digest()


class SnapshotCodec:
    """One per process. Coding and decoding take the `threads` of whoever asks."""

    def __init__(
        self,
        snapshots: Snapshots,
        *,
        stamp: bytes,
        neighbours: NeighbourWeights,
        metrics: Metrics,
        tokens: Tokens | None = None,
    ) -> None:
        """`neighbours` and `tokens` as the corpora have them that are kept here."""
        self._snapshots = snapshots
        self._stamp = stamp
        self._neighbours = neighbours
        self._tokens = tokens
        self._metrics = metrics
        self._is_well = True

    async def read(self, user_id: str, threads: Executor) -> Snapshot | None:
        """None where there is none that can be used. Never raises."""
        try:
            blob = await self._snapshots.read(user_id)
        except Unavailable as error:
            self._failed("read_failed", error)
            return None
        if blob is None:
            self._count("missing")
            return None
        decoding = partial(
            decode, blob, user_id=user_id, stamp=self._stamp, neighbours=self._neighbours, tokens=self._tokens
        )
        try:
            found = await asyncio.get_running_loop().run_in_executor(threads, decoding)
        except UnusableSnapshot as refused:
            self._count(refused.why)
            await self.discard(user_id)
            return None
        self._count("read")
        return found

    async def write(self, user_id: str, contents: Contents, *, revision: int, threads: Executor) -> bool:
        """Whether it is there now. Never raises."""
        try:
            coding = partial(encode, contents, revision=revision, user_id=user_id, stamp=self._stamp)
            blob = await asyncio.get_running_loop().run_in_executor(threads, coding)
            await self._snapshots.write(user_id, blob)
        except Unavailable as error:
            self._failed("write_failed", error)
            return False
        except (ValueError, TypeError, RecursionError) as error:  # of rows that somebody else wrote
            self._count("write_failed")
            log.warning("a snapshot could not be made", error=type(error).__name__)
            return False
        self._count("written")
        if not self._is_well:
            self._is_well = True
            log.info("snapshots can be written again")
        return True

    async def erase(self, user_id: str) -> None:
        """Gone when this returns. Raises `Unavailable`."""
        await self._snapshots.erase(user_id)
        self._count("erased")

    async def discard(self, user_id: str) -> None:
        """For one that is merely of no use. Never raises."""
        try:
            await self.erase(user_id)
        except Unavailable as error:
            self._failed("erase_failed", error)

    def _failed(self, outcome: str, error: Unavailable) -> None:
        self._count(outcome)
        if self._is_well:
            self._is_well = False
            log.warning("snapshots of working sets cannot be kept: first questions are slower", reason=str(error))

    def _count(self, outcome: str) -> None:
        self._metrics.snapshots.labels(outcome).inc()


__all__ = ["READING", "SnapshotCodec", "stamp_of"]
