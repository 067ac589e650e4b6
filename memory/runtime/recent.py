"""A dictionary of limited size."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """Drops the entry that was written longest ago when there are more than `entries_max`."""

    def __init__(self, entries_max: int) -> None:
        super().__init__()
        self._entries_max = entries_max

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._entries_max:
            self.popitem(last=False)
