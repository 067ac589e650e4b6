"""What is on record about conversations with an arm, for the operator's report."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from memory.model.arms import ComparedTurn


class HoldoutRecord(Protocol):
    """Reads recorded turns with what their receipts say of arms. Raises `Unavailable`."""

    def turns(self, *, since: float) -> AsyncIterator[ComparedTurn]:
        """All users' turns said since then that have a receipt, in the order of opening; those of sessions without an
        arm too. Turns whose receipt has expired or was erased are missing.
        """
        ...
