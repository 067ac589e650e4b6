"""The doctor's check that the running parts run what is installed: an upgrade takes effect with a restart."""

from __future__ import annotations

from collections import Counter

from memory.processes.findings import Finding, Level
from memory.processes.kept_state import ExaminedState
from memory.processes.running_parts import RunningPart, introduced
from memory.runtime.release import Release

NAME = "version"
SHOWN_MAX = 10
RESTART = (
    "run `memproxy restart`, or restart the containers: until then they go on with what was installed at their start"
)


async def version_finding(state: ExaminedState | None, installed: Release) -> Finding:
    """`state`: what the parts share, if it can be read. `installed`: what a start would run now."""
    if state is None:
        return Finding(NAME, Level.OK, f"{installed} is installed; no part can be asked")
    parts = introduced(await state.introductions())
    stale = [one for one in parts if one is None or one.release.differs_from(installed)]
    if stale:
        named = [f"{one} runs {one.release}" for one in stale if one is not None]
        if silent := stale.count(None):
            named.append(f"{silent} of a release that does not state its version")
        more = f" and {len(named) - SHOWN_MAX} more" if len(named) > SHOWN_MAX else ""
        return Finding(NAME, Level.WARN, f"{installed} is installed; {', '.join(named[:SHOWN_MAX])}{more}", RESTART)
    return Finding(NAME, Level.OK, f"{installed}, run by {_counted(parts) or 'no part now'}")


def _counted(parts: list[RunningPart | None]) -> str:
    kinds = Counter(one.part for one in parts if one is not None)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
