"""The doctor's check of the clock: against the newest turn or the database's server, and against the upstream."""

from __future__ import annotations

from memory.adapters.server_dates import date_of
from memory.errors import Unavailable
from memory.processes.findings import Finding, Level
from memory.processes.kept_state import ExaminedState
from memory.settings import Settings

NAME = "clock"
DIFFERENCE_SECONDS_MAX = 60.0  # synchronised clocks differ by less than one
ANSWER_SECONDS_MAX = 5.0


async def clock_finding(settings: Settings, state: ExaminedState | None, *, now: float) -> Finding:
    """`state`: what is kept, if it can be read."""
    newest = await _newest(state, now)
    if newest - now > DIFFERENCE_SECONDS_MAX:
        says = (
            f"the newest turn was recorded {newest - now:.0f} s after what this machine calls now: its clock went back"
        )
        advice = (
            "correct the clock and keep it synchronised: until then what is said now counts as older than that turn"
        )
        return Finding(NAME, Level.WARN, says, advice)
    agreeing: list[str] = []
    for name, there in await _others(settings, state):
        difference = now - there
        if abs(difference) > DIFFERENCE_SECONDS_MAX:
            says = f"{abs(difference):.0f} s {'ahead of' if difference > 0 else 'behind'} that of {name}"
            advice = "synchronise both clocks: `today` and `last week` in memories are reckoned with this one"
            return Finding(NAME, Level.WARN, says, advice)
        agreeing.append(name)
    if not agreeing:
        return Finding(NAME, Level.OK, "not behind the newest turn; no upstream says what time it is")
    return Finding(NAME, Level.OK, f"agrees with {' and '.join(agreeing)}")


async def _newest(state: ExaminedState | None, now: float) -> float:
    found = None if state is None or state.newest_turn_at is None else await state.newest_turn_at()
    return now if found is None else found


async def _others(settings: Settings, state: ExaminedState | None) -> list[tuple[str, float]]:
    """What other machines call now, with their names; without those that are away, which other checks report."""
    others: list[tuple[str, float]] = []
    if state is not None and state.server_time is not None:
        others.append((state.where, await state.server_time()))
    if settings.upstream:
        try:
            there = await date_of(settings.upstream, seconds=ANSWER_SECONDS_MAX)
        except Unavailable:
            return others
        if there is not None:
            others.append((settings.upstream, there))
    return others
