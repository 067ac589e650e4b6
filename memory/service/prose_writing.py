"""Has profiles written in prose, in the background and one at a time; chats get the fixed layout until then.

A profile is written once its lines have not changed for a while, and again only when they do, so that its bytes are as
stable as they are. What cannot be used leaves the layout, and so does a profile that fails several times; none holds up
another. It never logs content.
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
from memory.runtime.task_groups import pause_before
from memory.service.profile_prose import LINES_MIN, TASK, material, prose_faults, prose_of

POLL_SECONDS = 2.0
SETTLED_SECONDS = 30.0  # a chat that tells several things changes the lines with each of them
OUTAGE_SECONDS = 60.0  # until a model that is down, or has not passed its exam, is asked again
PROFILE_PAUSE_SECONDS = 60.0  # until a profile that failed is tried again
TRIES_MAX = 2  # of one version of a profile; then it stays as it is
TRIED_PROFILES_MAX = 1_000
EXAMINED_MAX = 50  # waiting profiles, the newest: as many may fail before others wait for them

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
        self._tries = _Tries()
        self._is_broken = False

    async def run(self, until: asyncio.Event) -> None:
        while not until.is_set():
            pause = await self._round()
            await pause_before(until, pause)

    async def _round(self) -> float:
        """Write what is waiting; seconds until the next round."""
        has_more = True
        while has_more:
            try:
                has_more = await self.write_next()
                self._is_broken = False
            except Unavailable:
                return OUTAGE_SECONDS
            except (MemproxyError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                if not self._is_broken:
                    log.warning("a profile cannot be written in prose now", error=type(error).__name__)
                self._is_broken = True
        return POLL_SECONDS

    async def write_next(self) -> bool:
        """Write the newest profile that is waiting, and not paused after a failure; False if there is none.

        Raises `Unavailable`, and whatever a faulty profile causes.
        """
        now = self._clock()
        waiting = await self._profiles.unwritten(settled_before=now - SETTLED_SECONDS, limit=EXAMINED_MAX)
        profile = next((one for one in waiting if not self._tries.is_paused(one, now=now)), None)
        if profile is None:
            return False
        is_given_up = self._tries.begin(profile, until=now + PROFILE_PAUSE_SECONDS) > TRIES_MAX
        try:
            prose = None if is_given_up else await self._written(profile)
            is_put = await self._profiles.put_prose(profile, prose)
        except Unavailable as error:
            if not isinstance(error, Late):
                self._tries.take_back(profile)
            raise
        if is_put:
            self._tries.succeed(profile)
            if len(profile.lines) >= LINES_MIN:
                self._metrics.profiles.labels("written" if prose is not None else "not_written").inc()
        return True

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
            if self._tries.count(profile) >= TRIES_MAX:
                return None
            raise
        if prose_faults(sentences, lines, tokens=tokens):
            return None
        return ProfileProse(prose_of(sentences, lines, tokens=tokens), made_by)


class _Tries:
    """How often versions of profiles were tried in vain, and until when each pauses; of the latest ones.

    A try is counted before it is made, so that any failure counts.
    """

    def __init__(self) -> None:
        self._of: OrderedDict[tuple[str, str, int], tuple[int, float]] = OrderedDict()

    def begin(self, profile: Profile, *, until: float) -> int:
        """The number of tries with this one."""
        count = self.count(profile) + 1
        self._of[_version(profile)] = count, until
        self._of.move_to_end(_version(profile))
        if len(self._of) > TRIED_PROFILES_MAX:
            self._of.popitem(last=False)
        return count

    def take_back(self, profile: Profile) -> None:
        """It was not the profile's fault; others are tried before it all the same."""
        count, until = self._of[_version(profile)]
        self._of[_version(profile)] = count - 1, until

    def succeed(self, profile: Profile) -> None:
        self._of.pop(_version(profile), None)

    def count(self, profile: Profile) -> int:
        return self._of.get(_version(profile), (0, 0.0))[0]

    def is_paused(self, profile: Profile, *, now: float) -> bool:
        return self._of.get(_version(profile), (0, 0.0))[1] > now


def _version(profile: Profile) -> tuple[str, str, int]:
    return profile.user_id, profile.project_id, profile.version


__all__ = ["ProfileProseWriting"]
