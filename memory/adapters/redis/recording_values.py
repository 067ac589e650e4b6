"""Who records turns, and when nobody did: the rules as pure functions. See `memory.ports.RecordingTimes`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

SILENCE_SECONDS_MAX = 30.0  # between two beats: beyond it, a process was suspended, or could not write
NOBODY = ""  # in place of an owner: when the last of those that are gone recorded


class RecordingGap(msgspec.Struct, frozen=True):
    """`is_loss`: somebody lost turns in it."""

    began_at: float
    ended_at: float
    is_loss: bool


@dataclass(frozen=True, slots=True)
class Recorders:
    """The last beats by owner, and the gap that has just ended, if one has."""

    last: Mapping[str, float]
    gap: RecordingGap | None = None


def beat(
    last: Mapping[str, float], owner: str, *, dead: Collection[str], now: float, missed_since: float | None
) -> Recorders:
    gone = {other: at for other, at in last.items() if other in dead and other not in (NOBODY, owner)}
    begins = list(gone.values())
    if owner in last:
        begins += [last[owner]] if now - last[owner] > SILENCE_SECONDS_MAX else []
    elif last and not last.keys() - gone.keys() - {NOBODY}:  # nobody recorded until now
        begins.append(max(last.values()))
    begins += [] if missed_since is None else [missed_since]
    gap = RecordingGap(min(*begins, now), now, missed_since is not None) if begins else None
    for other in gone:
        last = _without(last, other, gone[other])
    return Recorders({**last, owner: max(now, last.get(owner, now))}, gap)


def end(last: Mapping[str, float], owner: str, *, now: float) -> Recorders:
    return Recorders(_without(last, owner, now) if owner in last else last)


def _without(last: Mapping[str, float], owner: str, at: float) -> dict[str, float]:
    left = {other: when for other, when in last.items() if other != owner}
    return {**left, NOBODY: max(at, left.get(NOBODY, at))}


def gap_after(gaps: Sequence[RecordingGap], at: float) -> float | None:
    """When the first gap began of those that ended after `at`; None if there is none."""
    found = [gap for gap in gaps if gap.ended_at > at]
    return min(found, key=lambda gap: gap.ended_at).began_at if found else None


def gap_with_room(gaps: Sequence[RecordingGap], *, since: float, seconds: float, after_loss: float) -> float | None:
    """When the first gap began of those that ended since then and lasted so long; None if there is none.

    `after_loss`: seconds that one with a lost turn has to last.
    """
    found = [
        gap
        for gap in gaps
        if gap.ended_at >= since and gap.ended_at - gap.began_at >= (after_loss if gap.is_loss else seconds)
    ]
    return min(found, key=lambda gap: gap.ended_at).began_at if found else None
