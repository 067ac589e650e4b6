"""Erases everything of a user, with proof: the rows at once, the bytes in files soon after, then a look for the rest.

`UserErasures` deletes the rows and records the erasure by a digest of the user's id. `FileRewriter`, which the worker
runs, writes the files anew that still hold deleted bytes; several erasures share one rewriting, and one that was broken
off is repeated. Who asks for the proof names the user again: only then can anybody look for the user's id. It is a
partial one where a server keeps files that nobody here can read; the report names them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import structlog

from memory.errors import BadInput, Conflict, NotFound, Unavailable
from memory.model import Scope, is_valid_id
from memory.ports import Clock
from memory.ports.erasures import (
    ErasureProof,
    ErasureRecord,
    ErasureRequest,
    Erasures,
    FileRewriting,
    ScanReport,
)
from memory.runtime.metrics import Metrics
from memory.service.erasure import Erasure
from memory.service.idempotency import NewId

ATTEMPTS_MAX = 5  # a user who goes on chatting while being erased
LOOK_SECONDS = 1.0  # between two looks for erasures whose files wait
REST_PER_SECOND = 4.0  # seconds of pause per second of rewriting: it takes a fifth of the time at most
RETRY_SECONDS = 10.0
LOOK_AGAIN_SECONDS = 10.0  # after a look that found something: each reads everything
PARTLY_AGAIN_SECONDS = 3_600.0  # after one that found nothing, and could not look everywhere: seldom would the next one

log = structlog.get_logger(__name__)


class ErasureState(StrEnum):
    """How far it is. `DELETED`: no request finds anything, while files may hold bytes. `REMAINS`: a look found some.

    `PARTLY_PROVEN`: it found nothing, and there are places that it could not look into.
    """

    DELETED = "deleted"
    REWRITTEN = "rewritten"
    PROVEN = "proven"
    PARTLY_PROVEN = "partly_proven"
    REMAINS = "remains"


@dataclass(frozen=True, slots=True)
class ErasureStatus:
    state: ErasureState
    record: ErasureRecord


class UserErasures:
    """Methods raise `BadInput` (`NotFound`), `Unavailable` or `Conflict`; each may be repeated."""

    def __init__(self, erasure: Erasure, proof: ErasureProof, *, clock: Clock, new_id: NewId) -> None:
        self._erasure = erasure
        self._proof = proof
        self._clock = clock
        self._new_id = new_id
        self._one_look_at_a_time = asyncio.Lock()

    async def everything(self, user_id: str, *, shared: int = 0) -> ErasureStatus:
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
            await self._proof.record.begun(user_id, request)
            if await self._erasure.end_life(user_id):
                break
        else:
            raise Conflict("the user's memories were written while they were erased: call again")
        request = replace(request, deleted_at=self._clock())
        await self._proof.record.begun(user_id, request)
        return ErasureStatus(ErasureState.DELETED, ErasureRecord(request))

    async def latest(self, *, limit: int) -> list[ErasureStatus]:
        """Those of all users, the latest first, as they were when somebody last asked for the proof."""
        found = await self._proof.record.latest(limit=limit)
        return [ErasureStatus(_state_of(record), record) for record in found]

    async def status(self, user_id: str, erasure_id: str) -> ErasureStatus:
        """How far it is. Looks for the user's id everywhere once files are rewritten, until a look found nothing."""
        async with self._one_look_at_a_time:
            return await self._looked(user_id, erasure_id)

    async def _looked(self, user_id: str, erasure_id: str) -> ErasureStatus:
        found = await self._proof.record.get(user_id, erasure_id) if is_valid_id(erasure_id) else None
        if found is None:
            raise NotFound("this user has no such erasure")
        if self._proof.places and _is_look_due(found, now=self._clock()):
            looks = [await place.scan([user_id]) for place in self._proof.places]
            report = ScanReport.of([one for one in looks if one is not None], at=self._clock())
            await self._proof.record.scanned(erasure_id, report)
            found = ErasureRecord(found.request, found.rewritten_at, report)
        return ErasureStatus(_state_of(found), found)


def _state_of(record: ErasureRecord) -> ErasureState:
    if record.rewritten_at is None:
        return ErasureState.DELETED
    if record.scan is None or not record.scan.places:  # a look into files alone proves nothing of servers
        return ErasureState.REWRITTEN
    if record.scan.found_in:
        return ErasureState.REMAINS
    return ErasureState.PROVEN if record.scan.is_complete else ErasureState.PARTLY_PROVEN


def _is_look_due(record: ErasureRecord, *, now: float) -> bool:
    since = math.inf if record.scan is None else now - record.scan.scanned_at
    match _state_of(record):
        case ErasureState.REWRITTEN:
            return True
        case ErasureState.REMAINS:
            return since >= LOOK_AGAIN_SECONDS
        case ErasureState.PARTLY_PROVEN:
            return since >= PARTLY_AGAIN_SECONDS
    return False


class FileRewriter:
    """Rewrites the files of all parts after erasures. One per deployment: the worker runs it."""

    def __init__(self, erasures: Erasures, parts: Sequence[FileRewriting], *, clock: Clock, metrics: Metrics) -> None:
        self._erasures = erasures
        self._parts = tuple(parts)
        self._clock = clock
        self._metrics = metrics

    async def run(self, until: asyncio.Event) -> None:
        """Until told to stop. Never raises `Unavailable`: what was impossible is tried again."""
        while not until.is_set():
            pause = LOOK_SECONDS
            try:
                pause += await self.run_once() * REST_PER_SECOND
            except (Unavailable, Conflict, BadInput) as error:
                pause = RETRY_SECONDS
                log.warning("files are not rewritten after an erasure: trying again", reason=str(error))
            try:
                async with asyncio.timeout(pause):
                    await until.wait()
            except TimeoutError:
                continue

    async def run_once(self) -> float:
        """Seconds that it took to rewrite the files; 0 if no erasure waits for it."""
        waiting = await self._erasures.pending()
        oldest = min((one.deleted_at for one in waiting), default=self._clock())
        self._metrics.erasures_waiting_seconds.set(max(0.0, self._clock() - oldest))
        if not waiting:
            return 0.0
        began_at = self._clock()
        for part in self._parts:
            await part.refuse_in_vain()
        for part in self._parts:
            await part.rewrite()
        await self._erasures.rewritten([one.id for one in waiting], at=self._clock())
        self._metrics.erasures_waiting_seconds.set(0.0)
        return max(0.0, self._clock() - began_at)


__all__ = ["ErasureState", "ErasureStatus", "FileRewriter", "UserErasures"]
