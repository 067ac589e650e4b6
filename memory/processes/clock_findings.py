"""The doctor's check of the clock: against the newest stored turn, and against the upstream."""

from __future__ import annotations

from collections.abc import Sequence

from memory.adapters.server_dates import date_of
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.turn_times import newest_turn_at
from memory.errors import Unavailable
from memory.processes.findings import Finding, Level
from memory.settings import Settings

NAME = "clock"
DIFFERENCE_SECONDS_MAX = 60.0  # synchronised clocks differ by less than one
ANSWER_SECONDS_MAX = 5.0


async def clock_finding(settings: Settings, databases: Sequence[SqliteDatabase], *, now: float) -> Finding:
    """`databases`: the turn log, if it can be read."""
    newest = max([at for one in databases if (at := await newest_turn_at(one)) is not None], default=now)
    if newest - now > DIFFERENCE_SECONDS_MAX:
        says = (
            f"the newest turn was recorded {newest - now:.0f} s after what this machine calls now: its clock went back"
        )
        advice = (
            "correct the clock and keep it synchronised: until then what is said now counts as older than that turn"
        )
        return Finding(NAME, Level.WARN, says, advice)
    difference = await _difference(settings, now)
    if difference is None:
        return Finding(NAME, Level.OK, "not behind the newest turn; no upstream says what time it is")
    if abs(difference) > DIFFERENCE_SECONDS_MAX:
        says = f"{abs(difference):.0f} s {'ahead of' if difference > 0 else 'behind'} that of {settings.upstream}"
        advice = "synchronise both clocks: `today` and `last week` in memories are reckoned with this one"
        return Finding(NAME, Level.WARN, says, advice)
    return Finding(NAME, Level.OK, f"agrees with {settings.upstream}")


async def _difference(settings: Settings, now: float) -> float | None:
    """Our seconds minus those of the upstream; None if it has none, or is away, which another check reports."""
    if not settings.upstream:
        return None
    try:
        there = await date_of(settings.upstream, seconds=ANSWER_SECONDS_MAX)
    except Unavailable:
        return None
    return None if there is None else now - there


__all__ = ["clock_finding"]
