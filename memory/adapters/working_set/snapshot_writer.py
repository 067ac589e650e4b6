"""Who changes memories keeps their users' snapshots: in the background, and seldom; but what is forgotten goes at once.

The user's lock is the one place where every write passes by, so that this is where snapshots learn of it, whoever
writes. A snapshot may lack a few changes: whoever reads it fetches them. So a user's first one is written soon, for a
kill may come at any time, and from then on one when it lacks many changes, or now and then, or when the process ends.
It must never make a write wait, but for the erasure that a deletion stands for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from memory.adapters.working_set.snapshot_codec import SnapshotCodec
from memory.adapters.working_set.working_sets import UNSAVED_MAX, WorkingSets
from memory.ports import LedgerWrite, Revision, UserLedger


@dataclass(frozen=True, slots=True)
class SnapshotTiming:
    """Seconds."""

    soon: float = 0.5  # until a user's first snapshot in this process, or after many changes
    late: float = 60.0  # after a first change that the snapshot lacks; to save one keeps the store busy for 20 ms
    flush: float = 2.0  # at the end, for all that are due: well below what a process is given to stop
    rest_per_second: float = (
        20.0  # spent on a user's last snapshot: a large one costs no more than a twentieth of a core
    )


CHANGES_MAX = 300  # unsaved ones, past which we rest no longer: the ledger tells of the last thousand only
USERS_KNOWN_MAX = 10_000  # of others, we do not know whether they have a snapshot

_DEFAULT_PACE = SnapshotTiming()


@dataclass(slots=True)
class _DueSnapshot:
    at: float  # time of the loop
    changes: int = 0


class SnapshotWriter:
    """One per process. `async with` opens it; leaving it writes what is due."""

    def __init__(self, sets: WorkingSets, snapshots: SnapshotCodec, *, timing: SnapshotTiming = _DEFAULT_PACE) -> None:
        self._sets = sets
        self._snapshots = snapshots
        self._timing = timing
        self._due: dict[str, _DueSnapshot] = {}
        self._took: OrderedDict[str, float] = OrderedDict()  # seconds for the last snapshot of a user
        self._news = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._keeping = self._tasks.create_task(self._keep_on())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._keeping is not None
        self._keeping.cancel()
        await self._tasks.__aexit__(None, None, None)
        ends_at = asyncio.get_running_loop().time() + self._timing.flush
        for user_id in list(self._due):
            try:
                async with asyncio.timeout_at(ends_at):
                    await self._save(user_id)
            except TimeoutError:
                break

    def changed(self, user_id: str, count: int) -> None:
        """So many memories of the user were written or deleted."""
        now, took = asyncio.get_running_loop().time(), self._took.get(user_id)
        soon = now + max(self._timing.soon, self._timing.rest_per_second * (took or 0.0))
        due = self._due.setdefault(user_id, _DueSnapshot(soon if took is None else now + self._timing.late))
        due.changes += count
        if due.changes >= UNSAVED_MAX:
            due.at = min(due.at, soon if due.changes < CHANGES_MAX else now)
        self._news.set()

    async def forgetting(self, user_id: str) -> None:
        """Something of the user is about to be deleted: no snapshot holds it any more. Raises `Unavailable`.

        What else was in the snapshot is held here first, so that the next one need not be made from the store.
        """
        await self._sets.hold(user_id)
        await self._snapshots.erase(user_id)

    async def forgot(self, user_id: str) -> None:
        """It is deleted. Whoever wrote a snapshot meanwhile did so from what there was before. Never raises."""
        await self._snapshots.discard(user_id)

    async def _keep_on(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._news.clear()
            first = min(self._due, key=lambda user_id: self._due[user_id].at, default=None)
            seconds = None if first is None else self._due[first].at - loop.time()
            if first is not None and seconds is not None and seconds <= 0:
                await self._save(first)
                continue
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _save(self, user_id: str) -> None:
        loop = asyncio.get_running_loop()
        del self._due[user_id]
        began_at = loop.time()
        await self._sets.save(user_id)
        self._took[user_id] = loop.time() - began_at
        self._took.move_to_end(user_id)
        if len(self._took) > USERS_KNOWN_MAX:
            self._took.popitem(last=False)


class SnapshottingLedger:
    """`memory.ports.UserLedger` that tells the keeper of every write."""

    def __init__(self, ledger: UserLedger, writer: SnapshotWriter) -> None:
        self._ledger = ledger
        self._writer = writer

    def write(self, user_id: str) -> AbstractAsyncContextManager[LedgerWrite]:
        return self._held(user_id)

    async def revision(self, user_id: str) -> Revision:
        return await self._ledger.revision(user_id)

    async def changed_since(self, user_id: str, number: int) -> frozenset[str] | None:
        return await self._ledger.changed_since(user_id, number)

    @asynccontextmanager
    async def _held(self, user_id: str) -> AsyncIterator[LedgerWrite]:
        kept: _SnapshottingWrite | None = None
        try:
            async with self._ledger.write(user_id) as held:
                kept = _SnapshottingWrite(held, user_id, self._writer)
                yield kept
        finally:  # after an error, too: part of it may have been written
            if kept is not None and kept.has_forgotten:
                await self._writer.forgot(user_id)
            if kept is not None and kept.touched:
                self._writer.changed(user_id, len(kept.touched))


class _SnapshottingWrite:
    """`memory.ports.LedgerWrite`."""

    def __init__(self, held: LedgerWrite, user_id: str, writer: SnapshotWriter) -> None:
        self.touched: set[str] = set()
        self.has_forgotten = False
        self._held = held
        self._user_id = user_id
        self._writer = writer

    def touch(self, memory_ids: Collection[str]) -> None:
        self.touched.update(memory_ids)
        self._held.touch(memory_ids)

    async def renew(self) -> None:
        await self._held.renew()

    def check_term(self) -> None:
        self._held.check_term()

    async def forgotten(self, memory_ids: Collection[str]) -> frozenset[str]:
        return await self._held.forgotten(memory_ids)

    async def forget(self, memory_ids: Collection[str]) -> None:
        """Implies that no snapshot holds them from here on; raises `Unavailable` where one cannot be erased."""
        await self._held.forget(memory_ids)
        if memory_ids:
            self.has_forgotten = True
            self.touched.update(memory_ids)
            await self._writer.forgetting(self._user_id)


__all__ = ["SnapshotTiming", "SnapshotWriter", "SnapshottingLedger"]
