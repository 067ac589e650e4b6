"""Erases everything of a user: the rows at once, the bytes in files soon after.

`UserErasures` deletes the rows and records the erasure by a digest of the user's id. `FileRewriter`, which the worker
runs, writes the files anew that still hold deleted bytes; erasures that happen close together share one rewriting, and
one that was broken off is repeated. Only who names the user can look for the user's id: `memproxy erase --verify` does.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

import structlog

from memory.errors import BadInput, Conflict, NotFound, Unavailable
from memory.model import Scope, is_valid_id
from memory.model.erasures import ErasureRecord, ErasureRequest
from memory.ports import Clock
from memory.ports.erasures import Erasures, FileRewriting
from memory.runtime.metrics import Metrics
from memory.runtime.task_groups import pause_before
from memory.service.erasure import Erasure
from memory.service.idempotency import NewId

ATTEMPTS_MAX = 5  # a user who goes on chatting while being erased
LOOK_SECONDS = 1.0  # between two looks for erasures whose files wait
SHARED_SECONDS = 5.0  # erasures of so many seconds after a rewriting share the next one
REST_PER_SECOND = 4.0  # seconds of pause per second of rewriting, which any user can have
RETRY_SECONDS = 60.0  # after an attempt that failed: parts before the one that refused were rewritten in vain
EXPIRY_SECONDS = 3_600.0  # between two looks for records that are older than they are kept
DAY = 86_400.0

log = structlog.get_logger(__name__)


class UserErasures:
    """Methods raise `BadInput` (`NotFound`), `Unavailable` or `Conflict`; each may be repeated."""

    def __init__(self, erasure: Erasure, erasures: Erasures, *, clock: Clock, new_id: NewId) -> None:
        self._erasure = erasure
        self._erasures = erasures
        self._clock = clock
        self._new_id = new_id

    async def everything(self, user_id: str, *, shared: int = 0) -> ErasureRecord:
        """On return nothing finds anything of the user, and nothing that was under way brings it back.

        `shared`: memories that were deleted in projects before.
        """
        Scope(user_id)  # refuses invalid ids
        erasure_id, asked_at = self._new_id(), self._clock()
        memories, turns = shared, 0
        for _ in range(ATTEMPTS_MAX):
            more_memories, more_turns = await self._erasure.scope(user_id, "")
            memories, turns = memories + more_memories, turns + more_turns
            deleted = {"memories": memories, "turns_withdrawn": turns}
            # before, for files are rewritten also if this process dies now; and after, for what was deleted meanwhile
            request = ErasureRequest(erasure_id, asked_at, self._clock(), deleted)
            await self._erasures.begun(user_id, request)
            if await self._erasure.advance_erase_epoch(user_id):
                break
        else:
            raise Conflict("the user's memories were written while they were erased: call again")
        request = replace(request, deleted_at=self._clock())
        await self._erasures.begun(user_id, request)
        return ErasureRecord(request)

    async def latest(self, *, limit: int) -> Sequence[ErasureRecord]:
        """Those of all users, the latest first."""
        return await self._erasures.latest(limit=limit)

    async def found(self, user_id: str, erasure_id: str, *, part: str = "") -> ErasureRecord:
        """How far it is. `part`: by which it was recorded. Raises `NotFound`, also for another user's or part's."""
        found = await self._erasures.get(user_id, erasure_id, part=part) if is_valid_id(erasure_id) else None
        if found is None:
            raise NotFound("this user has no such erasure")
        return found


class FileRewriter:
    """Rewrites the files of all parts after erasures. One per deployment: the worker runs it."""

    def __init__(
        self,
        erasures: Erasures,
        parts: Sequence[FileRewriting],
        *,
        clock: Clock,
        metrics: Metrics,
        keep_days: int,
    ) -> None:
        """`keep_days`: how long after the rewriting the record of an erasure is kept."""
        self._erasures = erasures
        self._parts = tuple(parts)
        self._clock = clock
        self._metrics = metrics
        self._keep_seconds = keep_days * DAY
        self._expires_from = -math.inf

    async def run(self, until: asyncio.Event) -> None:
        """Until told to stop. Never raises `Unavailable`: what was impossible is tried again."""
        while not until.is_set():
            try:
                pause = pause_after(await self.run_once())
            except (Unavailable, Conflict, BadInput) as error:
                pause = RETRY_SECONDS
                log.warning("files are not rewritten after an erasure: trying again", reason=str(error))
            await self._expire()
            await pause_before(until, pause)

    async def run_once(self) -> float | None:
        """Seconds that it took to rewrite the files; None if no erasure waits for it."""
        waiting = await self._erasures.pending()
        oldest = min((one.deleted_at for one in waiting), default=self._clock())
        self._metrics.erasures_waiting_seconds.set(max(0.0, self._clock() - oldest))
        if not waiting:
            return None
        began_at = self._clock()
        for part in self._parts:
            await part.refuse_in_vain()
        for part in self._parts:
            await part.rewrite()
        await self._erasures.rewritten(waiting, at=self._clock())
        self._metrics.erasures_waiting_seconds.set(0.0)
        return max(0.0, self._clock() - began_at)

    async def _expire(self) -> None:
        now = self._clock()
        if now < self._expires_from:
            return
        self._expires_from = now + EXPIRY_SECONDS
        try:
            await self._erasures.expire(before=now - self._keep_seconds)
        except Unavailable as error:
            self._expires_from = now + RETRY_SECONDS
            log.warning("old records of erasures are not deleted: trying again", reason=str(error))


def pause_after(seconds: float | None) -> float:
    """Seconds until the next look for erasures, after a rewriting that took so long; None: there was none."""
    return LOOK_SECONDS if seconds is None else max(SHARED_SECONDS, seconds * REST_PER_SECOND)
