"""Has profiles written in prose, in the background and one at a time; chats get the fixed layout until then.

A profile is written once its lines have not changed for a while, and again only when they do, so that its bytes are as
stable as they are. What cannot be used leaves the layout. It never fails, and never logs content.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import structlog

from memory.errors import Late, MemproxyError, Unavailable, Unusable
from memory.model import Profile, ProfileProse
from memory.ports import NoOptOuts, OptOuts, Profiles, Tokens
from memory.ports.writing import GroundedWriter
from memory.runtime.instruments import Instruments
from memory.service.profile_prose import LINES_MIN, TASK, material, prose_faults, prose_of

POLL_SECONDS = 2.0
SETTLED_SECONDS = 30.0  # a chat that tells several things changes the lines with each of them
OUTAGE_SECONDS = 60.0  # until a model that is down, or has not passed its exam, is asked again
LATE_TRIES_MAX = 2  # of one profile; then it stays as it is
LATE_PROFILES_MAX = 1_000

log = structlog.get_logger(__name__)


class ProfileProseWriting:
    """Any number of processes may run one: a text whose lines have changed meanwhile is not stored."""

    def __init__(
        self,
        *,
        profiles: Profiles,
        writer: GroundedWriter,
        tokens: Tokens,
        instruments: Instruments,
        opt_outs: OptOuts | None = None,
    ) -> None:
        """Nothing is written about users of `opt_outs`."""
        self._profiles = profiles
        self._writer = writer
        self._tokens = tokens
        self._opt_outs = opt_outs or NoOptOuts()
        self._clock = instruments.clock
        self._metrics = instruments.metrics
        self._late: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._is_broken = False

    async def run(self, until: asyncio.Event) -> None:
        while not until.is_set():
            pause = await self._round()
            try:
                async with asyncio.timeout(pause):
                    await until.wait()
            except TimeoutError:
                continue

    async def _round(self) -> float:
        """Write what is waiting; seconds until the next round."""
        try:
            while await self.write_next():
                self._is_broken = False
        except Unavailable:
            return OUTAGE_SECONDS
        except (MemproxyError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            if not self._is_broken:
                log.warning("profiles cannot be written in prose now", error=type(error).__name__)
            self._is_broken = True
            return OUTAGE_SECONDS
        return POLL_SECONDS

    async def write_next(self) -> bool:
        """Write the newest profile that is waiting; False if none is. Raises `Unavailable`."""
        settled_before = self._clock() - SETTLED_SECONDS
        waiting = await self._profiles.unwritten(settled_before=settled_before, limit=1)
        for profile in waiting:
            prose = await self._written(profile)
            is_put = await self._profiles.put_prose(profile, prose)
            if is_put and len(profile.lines) >= LINES_MIN:
                self._metrics.profiles.labels("written" if prose is not None else "not_written").inc()
        return bool(waiting)

    async def _written(self, profile: Profile) -> ProfileProse | None:
        """The prose, or None if there is none that may be used. Raises `Unavailable`."""
        if len(profile.lines) < LINES_MIN or await self._opt_outs.since(profile.user_id) is not None:
            return None
        lines, tokens = profile.lines, self._tokens
        made_by = await self._writer.name_for(TASK)
        try:
            sentences = await self._writer.write(
                TASK,
                material(lines),
                objections=lambda proposed: prose_faults(proposed, lines, tokens=tokens),
            )
        except Unusable:
            return None
        except Late:
            if self._is_late_again(profile):
                return None
            raise
        if prose_faults(sentences, lines, tokens=tokens):
            return None
        return ProfileProse(prose_of(sentences, lines, tokens=tokens), made_by)

    def _is_late_again(self, profile: Profile) -> bool:
        key = (profile.user_id, profile.project_id)
        self._late[key] = self._late.pop(key, 0) + 1
        if len(self._late) > LATE_PROFILES_MAX:
            self._late.popitem(last=False)
        return self._late[key] >= LATE_TRIES_MAX


__all__ = ["ProfileProseWriting"]
