"""How far an erasure is, and when to look for what is left of it.

A state says no more than the last look: `proven` that nothing is left anywhere, `partly_proven` that nothing was found
and something could not be searched, which the report names.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memory.errors import NotFound
from memory.model import is_valid_id
from memory.ports import Clock
from memory.ports.erasures import ErasureRecord, Erasures, PlaceReport, ScanReport

LOOK_AGAIN_SECONDS = 10.0  # after a look that found something: each reads everything
PARTLY_AGAIN_SECONDS = 3_600.0  # after one that found nothing, and could not look everywhere: seldom would the next one


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
    """Looks for the rest of erasures when somebody asks, one at a time. `subject`: by what the erasure was recorded."""

    def __init__(self, record: Erasures, *, clock: Clock) -> None:
        self._record = record
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()

    async def status(
        self, subject: str, erasure_id: str, look: Callable[[], Awaitable[Sequence[PlaceReport]]]
    ) -> ErasureStatus:
        """How far it is, after a look if one is due. A look without any place says nothing. Raises `NotFound`."""
        found = await self._found(subject, erasure_id)
        if _is_look_due(found, now=self._clock()):
            async with self._one_at_a_time:
                found = await self._found(subject, erasure_id)  # another call may have looked meanwhile
                if _is_look_due(found, now=self._clock()) and (places := await look()):
                    report = ScanReport.of(places, at=self._clock())
                    await self._record.scanned(erasure_id, report)
                    found = ErasureRecord(found.request, found.rewritten_at, report)
        return ErasureStatus.of(found)

    async def _found(self, subject: str, erasure_id: str) -> ErasureRecord:
        found = await self._record.get(subject, erasure_id) if is_valid_id(erasure_id) else None
        if found is None:
            raise NotFound("this user has no such erasure")
        return found


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


__all__ = ["LOOK_AGAIN_SECONDS", "PARTLY_AGAIN_SECONDS", "ErasureLooks", "ErasureState", "ErasureStatus"]
