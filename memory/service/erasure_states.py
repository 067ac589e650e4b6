"""How far an erasure is, and when to look for what is left of it.

A state says no more than the last look: `proven` that nothing is left anywhere, `partly_proven` that nothing was found
and something could not be searched, which the report names.

A look reads everything that the deployment keeps, and any user can ask for one. So looks take a fifth of the time at
most, whoever asks and for however many erasures, and the time between two looks for one user doubles with each of them,
whichever of their erasures it is for; only the first for a project is never more than a minute after the last one, for
a user may have erased everything before. Whoever asks earlier gets what the last look found, and goes before those who
ask later.
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

LOOK_AGAIN_SECONDS = 10.0  # after the first look for a user; twice as long after each further one …
LOOK_AGAIN_SECONDS_MAX = 3_600.0  # … and never longer
DOUBLINGS_MAX = 10  # past them it is longer anyway
FIRST_LOOK_SECONDS = 60.0  # the longest until the first look for everything, or for one project
LOOKS_COUNT_SECONDS = 86_400.0  # so long after the last look, the next one is the first again
PARTLY_AGAIN_SECONDS = 3_600.0  # after one that found nothing, and could not look everywhere: seldom would the next one
REST_PER_SECOND = 4.0  # seconds of pause per second of work, here and in rewriting: a fifth of the time at most
PLACE_SECONDS = 60.0  # so long after their last call, users who were turned away go before others
PLACES_MAX = 100  # users who have one; further ones get it when another was served, or asks no more

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
        self._places = _Places()

    async def status(self, user_id: str, erasure_id: str, look: Search, *, part: str = "") -> ErasureStatus:
        """How far it is, after a look if one is due. A look without any place says nothing. Raises `NotFound`.

        Whoever asks during a look for the same erasure waits for it; others would wait for nothing.
        `part`: by which the erasure was recorded.
        """
        found = await self._found(user_id, erasure_id, part)
        # Nothing is awaited between the second condition and the lock, so nobody waits there for somebody else's look.
        if await self._is_due(user_id, found, part) and self._may_look(user_id, erasure_id):
            async with self._one_at_a_time:
                self._looked_for = erasure_id
                found = await self._found(user_id, erasure_id, part)  # another call may have looked meanwhile
                if not self._rests(self._clock()) and await self._is_due(user_id, found, part):
                    found = await self._looked(user_id, found, look, part)
        return ErasureStatus.of(found)

    async def _found(self, user_id: str, erasure_id: str, part: str) -> ErasureRecord:
        found = await self._record.get(user_id, erasure_id, part=part) if is_valid_id(erasure_id) else None
        if found is None:
            raise NotFound("this user has no such erasure")
        return found

    async def _is_due(self, user_id: str, found: ErasureRecord, part: str) -> bool:
        """For its user, whatever is under way for others."""
        now = self._clock()
        if not _wants_a_look(found, now=now):
            return False
        last = await self._record.last_scan(user_id)
        if last is None or not last.places:
            return True
        seconds = _seconds_after(last)
        if seconds > FIRST_LOOK_SECONDS and await self._record.last_scan(user_id, part=part) is None:
            seconds = FIRST_LOOK_SECONDS
        return now - last.scanned_at >= seconds

    def _may_look(self, user_id: str, erasure_id: str) -> bool:
        """Whether it is their turn, or a look for the same erasure is under way. If not they go before later ones."""
        if self._one_at_a_time.locked() and self._looked_for == erasure_id:
            return True
        now = self._clock()
        is_free = not self._one_at_a_time.locked() and not self._rests(now)
        if is_free and self._places.first(now) in (None, user_id):
            return True
        self._places.asked(user_id, now)
        return False

    def _rests(self, now: float) -> bool:
        return self._rests_from <= now < self._rests_until

    async def _looked(self, user_id: str, found: ErasureRecord, look: Search, part: str) -> ErasureRecord:
        last, began_at = await self._record.last_scan(user_id), self._clock()
        try:
            places = await look(found)
        finally:
            self._places.served(user_id)
            self._rests_from = self._clock()
            self._rests_until = self._rests_from + (self._rests_from - began_at) * REST_PER_SECOND
        if not places:
            return found
        is_first = last is None or not last.places or began_at - last.scanned_at >= LOOKS_COUNT_SECONDS
        report = ScanReport.of(places, at=self._clock(), looks=1 if last is None or is_first else last.looks + 1)
        await self._record.scanned(found.request.id, report)
        return ErasureRecord(found.request, found.rewritten_at, report)


class _Places:
    """Users who were turned away, in the order in which they were, while they go on asking."""

    def __init__(self) -> None:
        self._asked_at: dict[str, float] = {}

    def first(self, now: float) -> str | None:
        self._asked_at = {user: at for user, at in self._asked_at.items() if 0.0 <= now - at < PLACE_SECONDS}
        return next(iter(self._asked_at), None)

    def asked(self, user_id: str, now: float) -> None:
        self.first(now)
        if user_id in self._asked_at or len(self._asked_at) < PLACES_MAX:
            self._asked_at[user_id] = now

    def served(self, user_id: str) -> None:
        self._asked_at.pop(user_id, None)


def _state_of(record: ErasureRecord) -> ErasureState:
    if record.rewritten_at is None:
        return ErasureState.DELETED
    if record.scan is None or not record.scan.places:  # a look into files alone proves nothing of servers
        return ErasureState.REWRITTEN
    if record.scan.found_in:
        return ErasureState.REMAINS
    return ErasureState.PROVEN if record.scan.is_complete else ErasureState.PARTLY_PROVEN


def _wants_a_look(record: ErasureRecord, *, now: float) -> bool:
    """Whether another look could say more."""
    match _state_of(record):
        case ErasureState.REWRITTEN | ErasureState.REMAINS:
            return True
        case ErasureState.PARTLY_PROVEN:
            return record.scan is not None and now - record.scan.scanned_at >= PARTLY_AGAIN_SECONDS
    return False


def _seconds_after(last: ScanReport) -> float:
    """Until the next look for the same user."""
    doublings = min(last.looks - 1, DOUBLINGS_MAX)
    return min(LOOK_AGAIN_SECONDS * 2.0**doublings, LOOK_AGAIN_SECONDS_MAX)
