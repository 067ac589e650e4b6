"""How many searches may run at a time, so that those that run end in time. Pure: it is told how long each one took.

Searches share one embedder and two or more cores, so each takes longer the more there are; the time of one divided by
how many ran beside it says what one more will add. Past what the deadline allows, a request is passed on at once: it
would come too late, and make others late. It must never stop all of them, for then it would learn nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

DEADLINE_SHARE = 0.7  # of the deadline that a search may be expected to take: the rest is for those that take longer
SMOOTHING = 0.15  # weight of the newest search; about ten of them make the estimate
OUTLIER = 2.0  # one search that takes longer than so many times the estimate counts as that: it is no trend yet
ALWAYS = 2  # searches that may run whatever the estimate says
LEFT_MIN = 0.25  # share of the deadline; with less of it left, not even one that runs alone would end in time


@dataclass(slots=True)
class _Place:
    """One search under way, and what is told of it: `seconds` that it took, and whether it got to its end."""

    beside: int
    seconds: float = 0.0
    is_complete: bool = False


class Admission:
    """One per process; used from one loop."""

    def __init__(self, *, at_once_max: int, deadline_seconds: float) -> None:
        self._at_once_max = at_once_max
        self._seconds_left_min = LEFT_MIN * deadline_seconds
        self._seconds_each = 0.0
        self.in_flight = 0

    def has_room(self, seconds_left: float) -> bool:
        """Whether one more would still end in that time, which is what the deadline leaves to it."""
        if self.in_flight >= self._at_once_max or seconds_left < self._seconds_left_min:
            return False
        return self.in_flight < ALWAYS or (self.in_flight + 1) * self._seconds_each <= DEADLINE_SHARE * seconds_left

    @contextmanager
    def place(self) -> Iterator[_Place]:
        """Hold a place while searching, and leave in it how that went."""
        self.in_flight += 1
        place = _Place(beside=self.in_flight)
        try:
            yield place
        finally:
            self._learn(place)
            self.in_flight -= 1

    def _learn(self, place: _Place) -> None:
        each, known = place.seconds / max(place.beside, self.in_flight), self._seconds_each
        if not known:
            self._seconds_each = each
        elif place.is_complete or each > known:  # one that failed quickly tells nothing
            self._seconds_each += SMOOTHING * (min(each, OUTLIER * known) - known)
