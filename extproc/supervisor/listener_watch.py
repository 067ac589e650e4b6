"""Decides from one look after another whether Envoy has lost its listener, so that only a new Envoy serves chats.

A restart cuts off whoever is served, so a single look decides nothing, and a listener that is merely busy is left
alone: it lets callers wait for a while, or closes connections past its limit, but it refuses nobody.
"""

from __future__ import annotations

from enum import StrEnum

REFUSALS_MIN = 2  # looks in a row: once may be a moment of its start
SILENT_LOOKS_MIN = 12  # in a row, about a minute: an overload that lasts so long serves nobody either


class ListenerSign(StrEnum):
    """What one request through the listener showed."""

    LIVES = "lives"  # it answered, or closed the connection, or the look itself failed
    REFUSES = "refuses"  # nobody listens
    IS_SILENT = "is_silent"  # the kernel accepted, or let us wait, and no answer came in time


class ListenerWatch:
    """The signs of one run, in their order."""

    def __init__(self) -> None:
        self._last = ListenerSign.LIVES
        self._repeated = 0

    def is_lost(self, sign: ListenerSign, *, is_live: bool) -> bool:
        """`is_live`: Envoy says that it serves, so that its listener should be there. Starts again after True."""
        if sign is ListenerSign.REFUSES and not is_live:  # it is starting, or its end is noticed elsewhere
            sign = ListenerSign.LIVES
        self._repeated = self._repeated + 1 if sign is self._last else 1
        self._last = sign
        looks_min = {ListenerSign.REFUSES: REFUSALS_MIN, ListenerSign.IS_SILENT: SILENT_LOOKS_MIN}.get(sign)
        if looks_min is None or self._repeated < looks_min:
            return False
        self._repeated = 0
        return True
