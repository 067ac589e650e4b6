"""When turns were recorded: what lies between may have been missed."""

from __future__ import annotations

from typing import Protocol


class RecordingTimes(Protocol):
    """The times of all processes that record turns, to find gaps. Raises `Unavailable`.

    A gap is a time in which no process recorded, or in which one died, was suspended, or lost turns.
    `ConversationTrees` reads the gaps: a conversation that is not known may have begun in one.
    """

    async def beat(self, *, missed_since: float | None = None) -> None:
        """This process records, and has recorded since its last call. Durable on return.

        The first call begins its recording: there is a gap before it, unless another process records.
        `missed_since`: the time since which it has lost turns.
        """
        ...

    async def end(self) -> None:
        """This process records no more. Without this call, its last beat ends its time."""
        ...
