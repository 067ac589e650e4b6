"""A circuit breaker for a part that may be down: fails fast while it is, and notices when it is back.

While open, one call at a time is let through as a trial, the next one `rest_seconds` after it failed; all others are
refused without waiting. Independent of the kind of part, and without a clock: `now` is any monotonic time, in seconds.
"""

from __future__ import annotations

import structlog

from memory.errors import Unavailable

FAILURES_MAX = 3  # in a row: one slow answer is not an outage, and waiting a fourth time would tell nothing new
REST_SECONDS = 0.5  # between two trials: short enough to be back before a user asks again


class Breaker:
    """Call `admit` before each call, and `succeeded` or `failed` after it. Logs one line per change of state."""

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
        """Raise `Unavailable` with the reason of the last failure while the breaker is open; otherwise the call may
        proceed.

        When open, this call becomes the trial: others wait until it has failed, or, if its caller abandons it, for
        `seconds`.
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
        """`is_certain`: a refused connection is conclusive; a time-out may be chance. `reason` is logged.

        Concurrent slow calls count once: of those running (`began_at`) when one failed, only that one counts, so that
        an overloaded part is not taken for an outage.
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
