"""The ports of what operators see: reports of evaluations, recorded turns with their arms, and the running parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.model.arms import ComparedTurn
from memory.model.evaluation_reports import EvaluationReport, ReportHead
from memory.ports.paging import Page


class EvaluationReports(Protocol):
    """Raises `BadInput` for a name that no report may have, and `Unavailable`."""

    async def keep(self, report: EvaluationReport) -> None:
        """Store the report whole, or not at all; an earlier one of that name is replaced."""

    async def page(self, *, limit: int, cursor: str = "") -> Page[ReportHead]:
        """Newest first. Raises `BadInput` for a cursor that is none. What cannot be read is left out."""

    async def get(self, name: str) -> EvaluationReport | None: ...


class HoldoutRecord(Protocol):
    """Reads recorded turns with what their receipts say of arms. Raises `Unavailable`."""

    def turns(self, *, since: float) -> AsyncIterator[ComparedTurn]:
        """All users' turns said since then that have a receipt, in the order of opening; those of sessions without an
        arm too. Turns whose receipt has expired or was erased are missing.
        """


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


class NoParts:
    """`DeploymentParts` where nobody looks after them."""

    async def health(self) -> Sequence[PartHealth]:
        return ()


NO_PARTS = NoParts()
