"""How far an erasure is, and when to look for what is left of it.

A state says no more than the last look: `proven` that nothing is left anywhere, `partly_proven` that nothing was found
and something could not be searched, which the report names. A look reads everything that the deployment keeps, and any
user can ask for one: so a process makes one at a time, and they take a fifth of the time at most. Whoever asks in
between gets what the last look found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from memory.errors import NotFound
from memory.model import is_valid_id
from memory.ports import Clock
from memory.ports.erasures import ErasureRecord, Erasures, PlaceReport, ScanReport

LOOK_AGAIN_SECONDS = 60.0  # after a look that found something
REST_PER_SECOND = 4.0  # seconds of pause per second of work, here and in rewriting: a fifth of the time at most

Search: TypeAlias = Callable[[ErasureRecord], Awaitable[Sequence[PlaceReport]]]
"""Looks for what is left of an erasure."""


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

    @classmethod
    def of(cls, record: ErasureRecord) -> ErasureStatus:
        return cls(_state_of(record), record)


class ErasureLooks:
    """Looks for the rest of erasures when somebody asks, one at a time. One per process, for all erasures."""

    def __init__(self, record: Erasures, *, clock: Clock) -> None:
        self._record = record
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._looked_for = ""  # the erasure for which a look is under way, or was
        self._rests_from, self._rests_until = 0.0, 0.0

    async def status(self, user_id: str, erasure_id: str, look: Search, *, part: str = "") -> ErasureStatus:
        """How far it is, after a look if one is due. A look without any place says nothing. Raises `NotFound`.

        Whoever asks during a look for the same erasure waits for it; others would wait for nothing.
        `part`: by which the erasure was recorded.
        """
        found = await self._found(user_id, erasure_id, part)
        # Nothing is awaited between this and the lock, so nobody waits there for somebody else's look.
        if self._is_due(found) and (not self._one_at_a_time.locked() or self._looked_for == erasure_id):
            async with self._one_at_a_time:
                self._looked_for = erasure_id
                found = await self._found(user_id, erasure_id, part)  # another call may have looked meanwhile
                if self._is_due(found):
                    found = await self._looked(found, look)
        return ErasureStatus.of(found)

    async def _found(self, user_id: str, erasure_id: str, part: str) -> ErasureRecord:
        found = await self._record.get(user_id, erasure_id, part=part) if is_valid_id(erasure_id) else None
        if found is None:
            raise NotFound("this user has no such erasure")
        return found

    def _is_due(self, found: ErasureRecord) -> bool:
        now = self._clock()
        if self._rests_from <= now < self._rests_until:
            return False
        if _state_of(found) is ErasureState.REMAINS:
            return found.scan is None or now - found.scan.scanned_at >= LOOK_AGAIN_SECONDS
        return _state_of(found) is ErasureState.REWRITTEN

    async def _looked(self, found: ErasureRecord, look: Search) -> ErasureRecord:
        began_at = self._clock()
        try:
            places = await look(found)
        finally:
            self._rests_from = self._clock()
            self._rests_until = self._rests_from + (self._rests_from - began_at) * REST_PER_SECOND
        if not places:
            return found
        report = ScanReport.of(places, at=self._clock())
        await self._record.scanned(found.request.id, report)
        return ErasureRecord(found.request, found.rewritten_at, report)


def _state_of(record: ErasureRecord) -> ErasureState:
    if record.rewritten_at is None:
        return ErasureState.DELETED
    if record.scan is None or not record.scan.places:  # a look into files alone proves nothing of servers
        return ErasureState.REWRITTEN
    if record.scan.found_in:
        return ErasureState.REMAINS
    return ErasureState.PROVEN if record.scan.is_complete else ErasureState.PARTLY_PROVEN
