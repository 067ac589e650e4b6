"""Keeps the order of calls for one turn: whoever finishes it need not wait for the call that opens it."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary


class TurnOrder:
    """Of one process."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, turn_id: str) -> asyncio.Lock:
        """Calls take effect in the order in which they asked for this lock."""
        lock = self._locks.get(turn_id)
        if lock is None:
            lock = self._locks[turn_id] = asyncio.Lock()
        return lock
