"""How long a chat waited before its stream was taken up: Envoy says with each stream when the request began.

gRPC takes up streams one after the other, so in an overload a chat waits longest where nothing of ours runs yet. The
clocks of two machines differ, and filters ahead of ours need their time, so what counts is the time beyond the shortest
that was seen. That one is believed a little less with every second, since clocks drift: by far more than they do, and
little enough for an overload to last for minutes.
"""

from __future__ import annotations

import math

BEGAN_METADATA = "x-request-began"  # Unix seconds with fractions; envoy.yaml has it written
DRIFT = 0.0002  # seconds a second: a clock set 0.1 s forward costs memory for some minutes


class StreamWaits:
    """One per process."""

    def __init__(self) -> None:
        self._shortest = math.inf
        self._seen_at = 0.0

    def waited(self, began: str | bytes, *, now: float) -> float:
        """Seconds since the request began, beyond the shortest; 0 if nobody says when it began."""
        try:
            seconds = now - float(began)
        except ValueError:
            return 0.0
        if not math.isfinite(seconds):
            return 0.0
        drifted = self._shortest + DRIFT * max(0.0, now - self._seen_at)
        self._shortest, self._seen_at = min(seconds, drifted), now
        return seconds - self._shortest


__all__ = ["BEGAN_METADATA", "StreamWaits"]
