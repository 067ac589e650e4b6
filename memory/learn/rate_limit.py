"""Limits how many facts one session may store per hour, against scripts, loops and pasted floods.

Time is that of the conversation, so that an imported history of several days does not count as a flood. Counts are
local to the process and bounded: after a restart, or with a second worker, a session may store as much again. Pure.
"""

from __future__ import annotations

from collections import OrderedDict

PACE_SECONDS = 3_600.0
SESSIONS_MAX = 10_000  # the session that was accessed longest ago is dropped first


_Windows = list[tuple[str, float, int]]  # window id, time said, facts stored


class SessionRateLimit:
    """At most `facts_max` facts per session and hour of conversation time."""

    def __init__(self, facts_max: int) -> None:
        self._facts_max = facts_max
        self._sessions: OrderedDict[tuple[str, str], _Windows] = OrderedDict()

    def facts_left(self, user_id: str, session_id: str, window_id: str, *, at: float) -> int:
        """How many facts the window may still store; an earlier attempt at the same window does not count."""
        windows = self._windows(user_id, session_id)
        near = (kept for known, said, kept in windows if known != window_id and abs(said - at) < PACE_SECONDS)
        return max(0, self._facts_max - sum(near))

    def record_window(self, user_id: str, session_id: str, window_id: str, *, at: float, kept: int) -> None:
        windows = self._windows(user_id, session_id)
        windows[:] = [one for one in windows if one[0] != window_id and at - one[1] < PACE_SECONDS]
        if kept:
            windows.append((window_id, at, kept))

    def _windows(self, user_id: str, session_id: str) -> _Windows:
        windows = self._sessions.setdefault((user_id, session_id), [])
        self._sessions.move_to_end((user_id, session_id))
        if len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return windows
