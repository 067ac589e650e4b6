"""Encodes working sets as snapshots and decodes them, in threads, with metrics, and without ever failing a chat.

Without a usable snapshot a chat continues: an unusable one is erased, after which a new one is made; a full or missing
disk is counted, and logged once, without content, until it works again. Only `erase` raises: what is forgotten must go.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from concurrent.futures import Executor
from functools import lru_cache, partial

import structlog

from memory.errors import Unavailable
from memory.language import function_words
from memory.model import VectorOrigin
from memory.model import memories as model_of_memories
from memory.ports import Snapshots, Tokens
from memory.recall.notes import injection
from memory.recall.ranking import corpus, layout, lexical, rows, snapshot
from memory.recall.ranking.corpus import Contents
from memory.recall.ranking.snapshot import Snapshot, UnusableSnapshot, decode, encode
from memory.runtime.metrics import Metrics

# The modules that determine the content of a snapshot: if their source changes, snapshots are outdated.
READING = (corpus, injection, layout, lexical, model_of_memories, rows, snapshot)

COUNTED = "kayak antidisestablishmentarianism $10,000 2026-01-31 Straßenbahnhaltestelle 北京烤鸭 años Zürich 🛶"

log = structlog.get_logger(__name__)


def stamp_of(*, origin: VectorOrigin, tokens: Tokens | None = None) -> bytes:
    """A hash of what a snapshot depends on besides its memories: code, embedding model, how `tokens` counts."""
    digest = hashlib.sha256(_code())
    counted = None if tokens is None else [tokens(word) for word in COUNTED.split()]
    digest.update(repr((origin, counted)).encode())
    return digest.digest()


@lru_cache(maxsize=1)
def _code() -> bytes:
    digest = hashlib.sha256(repr(sorted(function_words())).encode())
    for module in READING:
        digest.update(hashlib.sha256(inspect.getsource(module).encode()).digest())
    return digest.digest()


class SnapshotCodec:
    """One per process. Encoding and decoding run in the caller's `threads`."""

    def __init__(self, snapshots: Snapshots, *, stamp: bytes, metrics: Metrics, tokens: Tokens | None = None) -> None:
        """`tokens`: that of the corpora that are stored."""
        self._snapshots = snapshots
        self._stamp = stamp
        self._tokens = tokens
        self._metrics = metrics
        self._is_well = True

    async def read(self, user_id: str, threads: Executor) -> Snapshot | None:
        """The snapshot, or None without a usable one. Never raises."""
        try:
            blob = await self._snapshots.read(user_id)
        except Unavailable as error:
            self._failed("read_failed", error)
            return None
        if blob is None:
            self._count("missing")
            return None
        decoding = partial(decode, blob, user_id=user_id, stamp=self._stamp, tokens=self._tokens)
        try:
            found = await asyncio.get_running_loop().run_in_executor(threads, decoding)
        except UnusableSnapshot as refused:
            self._count(refused.why)
            await self.discard(user_id)
            return None
        self._count("read")
        return found

    async def write(self, user_id: str, contents: Contents, *, revision: int, threads: Executor) -> bool:
        """Whether it was written. Never raises."""
        try:
            coding = partial(encode, contents, revision=revision, user_id=user_id, stamp=self._stamp)
            blob = await asyncio.get_running_loop().run_in_executor(threads, coding)
            await self._snapshots.write(user_id, blob)
        except Unavailable as error:
            self._failed("write_failed", error)
            return False
        except (ValueError, TypeError, RecursionError) as error:  # of rows written by others
            self._count("write_failed")
            log.warning("a snapshot could not be made", error=type(error).__name__)
            return False
        self._count("written")
        if not self._is_well:
            self._is_well = True
            log.info("snapshots can be written again")
        return True

    async def erase(self, user_id: str) -> None:
        """Deleted on return. Raises `Unavailable`."""
        await self._snapshots.erase(user_id)
        self._count("erased")

    async def discard(self, user_id: str) -> None:
        """Delete an unusable one. Never raises."""
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
