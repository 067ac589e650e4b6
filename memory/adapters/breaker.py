"""A breaker before a part that may be down or frozen: fail at once while it is, and notice when it is back.

While open, one call at a time is let through to try, the next one `rest_seconds` after it failed; all others are
refused without waiting. It never knows what the part does, and never holds a clock: `now` is any monotonic time, in
seconds.
"""

from __future__ import annotations

import structlog

from memory.errors import Unavailable

FAILURES_MAX = 3  # in a row: one slow answer is no outage, and a fourth wait would teach nothing new
REST_SECONDS = 0.5  # between two tries: soon enough to be back before a user asks again


class Breaker:
    """Ask it before each call, tell it how each call went. Logs one line when the part goes and one when it is back."""

    def __init__(self, part: str, *, failures_max: int = FAILURES_MAX, rest_seconds: float = REST_SECONDS) -> None:
        self._part = part
        self._failures_max = failures_max
        self._rest_seconds = rest_seconds
        self._failures = 0
        self._rests_until = 0.0
        self._failed_at = 0.0
        self._reason = ""
        self._log = structlog.get_logger(__name__)

    @property
    def is_open(self) -> bool:
        return self._failures >= self._failures_max

    def admit(self, now: float, *, seconds: float = 0.0) -> None:
        """Raise `Unavailable`, with the reason of the last failure, while the part rests; else the call may go.

        When open it goes as the one try of this while: the others wait until it has failed, or, should its caller give
        it up, for the `seconds` that it may take.
        """
        if not self.is_open:
            return
        if now < self._rests_until:
            raise Unavailable(self._part, self._reason)
        self._rests_until = now + max(seconds, self._rest_seconds)

    def succeeded(self) -> None:
        if self.is_open:
            self._log.info("part is back", part=self._part)
        self._failures = 0

    def failed(self, now: float, *, reason: str, is_certain: bool, began_at: float = float("inf")) -> None:
        """`is_certain`: a refused connection speaks for itself; a time-out may be bad luck. `reason` gets logged.

        Calls that are slow together were slow once: of those that were under way (`began_at`) when one failed, that one
        counts. A busy part is not taken for one that is away.
        """
        if not is_certain and began_at < self._failed_at:
            return
        was_open = self.is_open
        self._failures = max(self._failures + 1, self._failures_max if is_certain else 0)
        self._failed_at = now
        self._reason = reason
        self._rests_until = now + self._rest_seconds
        if self.is_open and not was_open:
            self._log.warning("part is unavailable", part=self._part, reason=reason)
