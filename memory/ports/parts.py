"""The port that sees the processes of the deployment: which of them run, and whether they can be reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

NOT_SEEN = "not_seen"  # the reason of a part of which nothing can be known from here


@dataclass(frozen=True, slots=True)
class PartHealth:
    """`reason`: why it does not work; "" if it does. `running`: how many processes of it, of `expected`; None where
    they are not counted.
    """

    part: str
    reason: str
    running: int | None = None
    expected: int | None = None

    @property
    def is_ok(self) -> bool | None:
        """None: unknown."""
        return None if self.reason == NOT_SEEN else not self.reason


class DeploymentParts(Protocol):
    """The parts besides the one that asks."""

    async def health(self) -> Sequence[PartHealth]:
        """Each part as it is now. Never raises; takes a few seconds at most."""
        ...


class NoParts:
    """`DeploymentParts` where nobody looks after them."""

    async def health(self) -> Sequence[PartHealth]:
        return ()


NO_PARTS = NoParts()
