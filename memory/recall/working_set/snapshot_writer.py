"""Keeps snapshots up to date in the background: written rarely, erased at once when memories are deleted.

All writes hold the user's lock, so `SnapshottingLedger` notices every change. A snapshot may lack a few changes, which
readers fetch. A user's first snapshot is written soon, since the process may be killed at any time; later ones when
many changes are missing, at intervals, and at the end. Writes wait for no snapshot but its erasure before a deletion.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from memory.ports import LedgerWrite, UserLedger
from memory.recall.working_set.snapshot_codec import SnapshotCodec
from memory.recall.working_set.working_sets import UNSAVED_MAX, WorkingSets
from memory.runtime.recent import Recent
from memory.runtime.task_groups import pause_before


@dataclass(frozen=True, slots=True)
class SnapshotTiming:
    """Seconds."""

    soon: float = 0.5  # until a user's first snapshot in this process, or after many changes
    late: float = 60.0  # after the first change that the snapshot lacks; saving one occupies the store for 20 ms
    flush: float = 2.0  # at the end, for all that are due: well below the time that a process has to stop
    # Of pause per second spent on a user's last snapshot: a large one takes at most a twentieth of a core.
    rest_per_second: float = 20.0


CHANGES_MAX = 300  # unsaved changes that end a pause: the ledger keeps the last thousand only
USERS_KNOWN_MAX = 10_000  # for further users, we do not know whether they have a snapshot


@dataclass(slots=True)
class _DueSnapshot:
    at: float  # the loop's time
    changes: int = 0


class SnapshotWriter:
    """One per process. Open with `async with`; on exit it writes what is due."""

    def __init__(self, sets: WorkingSets, snapshots: SnapshotCodec, *, timing: SnapshotTiming | None = None) -> None:
        self._sets = sets
        self._snapshots = snapshots
        self.forgot = snapshots.discard  # after a deletion: one written meanwhile from older data; never raises
        self._timing = timing or SnapshotTiming()
        self._due: dict[str, _DueSnapshot] = {}
        self._took: Recent[str, float] = Recent(USERS_KNOWN_MAX)  # seconds that the last snapshot of a user took
        self._news = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._keeping = self._tasks.create_task(self._keep_on())
        return self

    async def __aexit__(self, *_: object) -> None:
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
        """`count` memories of the user were written or deleted."""
        now, took = asyncio.get_running_loop().time(), self._took.get(user_id)
        soon = now + max(self._timing.soon, self._timing.rest_per_second * (took or 0.0))
        due = self._due.setdefault(user_id, _DueSnapshot(soon if took is None else now + self._timing.late))
        due.changes += count
        if due.changes >= UNSAVED_MAX:
            due.at = min(due.at, soon if due.changes < CHANGES_MAX else now)
        self._news.set()

    async def forgetting(self, user_id: str) -> None:
        """Before a deletion: erase the snapshot, after loading it, as it saves a load. Raises `Unavailable`."""
        await self._sets.hold(user_id)
        await self._snapshots.erase(user_id)

    async def ended(self, user_id: str) -> None:
        """The user was erased: no snapshot is due, and there is none. Never raises."""
        self._due.pop(user_id, None)
        self._took.pop(user_id, None)
        await self._snapshots.discard(user_id)

    async def _keep_on(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._news.clear()
            first = min(self._due, key=lambda user_id: self._due[user_id].at, default=None)
            seconds = None if first is None else self._due[first].at - loop.time()
            if first is not None and seconds is not None and seconds <= 0:
                await self._save(first)
            else:
                await pause_before(self._news, seconds)

    async def _save(self, user_id: str) -> None:
        loop = asyncio.get_running_loop()
        del self._due[user_id]
        began_at = loop.time()
        await self._sets.save(user_id)
        self._took[user_id] = loop.time() - began_at


class SnapshottingLedger:
    """`memory.ports.UserLedger` that reports every write to the snapshot writer."""

    def __init__(self, ledger: UserLedger, writer: SnapshotWriter) -> None:
        self._ledger = ledger
        self._writer = writer
        self.revision, self.erase_epoch, self.changed_since = ledger.revision, ledger.erase_epoch, ledger.changed_since

    @asynccontextmanager
    async def write(self, user_id: str) -> AsyncIterator[LedgerWrite]:
        kept: _SnapshottingWrite | None = None
        try:
            async with self._ledger.write(user_id) as held:
                kept = _SnapshottingWrite(held, user_id, self._writer)
                yield kept
        finally:  # also after an error: part of it may have been written
            if kept is not None and kept.has_ended:
                await self._writer.ended(user_id)
            elif kept is not None:
                if kept.has_forgotten:
                    await self._writer.forgot(user_id)
                if kept.touched:
                    self._writer.changed(user_id, len(kept.touched))


class _SnapshottingWrite:
    """`memory.ports.LedgerWrite`."""

    def __init__(self, held: LedgerWrite, user_id: str, writer: SnapshotWriter) -> None:
        self.touched: set[str] = set()
        self.has_forgotten = False
        self.has_ended = False
        self._held = held
        self._user_id = user_id
        self._writer = writer
        self.renew, self.check_term, self.forgotten = held.renew, held.check_term, held.forgotten

    def touch(self, memory_ids: Collection[str]) -> None:
        self.touched.update(memory_ids)
        self._held.touch(memory_ids)

    async def forget(self, memory_ids: Collection[str], *, raw_ids: Collection[str] = ()) -> None:
        """Erases the user's snapshot too, which holds no raw words; raises `Unavailable` if that fails."""
        await self._held.forget(memory_ids, raw_ids=raw_ids)
        if memory_ids:
            self.has_forgotten = True
            self.touched.update(memory_ids)
            await self._writer.forgetting(self._user_id)

    async def advance_erase_epoch(self) -> None:
        await self._held.advance_erase_epoch()
        self.has_ended = True
