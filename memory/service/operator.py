"""What an operator sees and does: requests, queue, dead letters, health.

Never a text of a user: no question, no memory, no message. Ids, statuses, reasons, counts and times are all there is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass

from memory.errors import Unavailable
from memory.model import CandidateVerdict, RecallStatus, Receipt
from memory.ports import Clock, DeadLetter, MemoryBank, QueueDepth, Receipts, TurnTriage
from memory.ports.evaluation_reports import NO_REPORTS, EvaluationReports
from memory.ports.parts import NO_PARTS, DeploymentParts, PartHealth

HEALTH_SECONDS_MAX = 3.0  # a part that takes longer serves no chat in time
LATE_SECONDS = 900.0  # a turn is learnt minutes after its conversation paused; with retries it takes longer
PROBE = "Is the embedding model ready?"


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """A receipt without its texts. `verdicts`: how many candidates each verdict got; `memories`: those in its notes."""

    receipt_id: str
    user_id: str
    at: float
    status: RecallStatus
    reason: str
    memories: int
    tokens: int
    verdicts: Mapping[CandidateVerdict, int]
    timings_ms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TracedRequests:
    """Latest first. `next_cursor` is "" on the last page."""

    requests: tuple[TracedRequest, ...]
    next_cursor: str


@dataclass(frozen=True, slots=True)
class OperatorSources:
    """What operators see besides the state: reports of evaluations, and the other parts of the deployment."""

    reports: EvaluationReports = NO_REPORTS
    parts: DeploymentParts = NO_PARTS


class OperatorService:
    """Methods raise `Unavailable`, or `BadInput` for a cursor that is none of ours."""

    def __init__(
        self,
        *,
        memories: MemoryBank,
        turn_log: TurnTriage,
        receipts: Receipts,
        sources: OperatorSources,
        clock: Clock,
    ) -> None:
        self._memories = memories
        self._turn_log = turn_log
        self._receipts = receipts
        self.reports = sources.reports
        self._parts = sources.parts
        self._clock = clock

    async def requests(self, *, limit: int, cursor: str = "") -> TracedRequests:
        """The requests of all users that have a receipt."""
        page = await self._receipts.page_of_all(limit=limit, cursor=cursor)
        return TracedRequests(tuple(map(traced_request, page.receipts)), page.next_cursor)

    async def queue(self) -> QueueDepth:
        return await self._turn_log.depth(now=self._clock())

    async def dead_letters(self, *, limit: int) -> list[DeadLetter]:
        return await self._turn_log.dead_letters(limit=limit)

    async def replay(self, window_ids: Collection[str]) -> int:
        """Learn these dead letters again; returns how many. Empty means none, unlike in the port."""
        return await self._turn_log.replay(window_ids) if window_ids else 0

    async def drop(self, window_ids: Collection[str]) -> int:
        """Delete these dead letters without learning them; returns how many. Their turns stay in the record."""
        return await self._turn_log.drop(window_ids)

    async def health(self) -> list[PartHealth]:
        """Each part that memory needs, tried now, all at once, and the other parts of the deployment."""
        tries = {
            "store": self._try_store(),
            "turn_log": self._try_turn_log(),
            "embedder": self._try_embedder(),
            "learning": self._try_learning(),
        }
        looking = asyncio.gather(*map(_reason_of, tries.values()))
        reasons, others = await asyncio.gather(looking, self._parts.health())
        return [*(PartHealth(part, reason) for part, reason in zip(tries, reasons, strict=True)), *others]

    async def _try_store(self) -> str:
        return "" if await self._memories.store.is_ready() else "not_ready"

    async def _try_turn_log(self) -> str:
        await self.queue()
        return ""

    async def _try_embedder(self) -> str:
        await self._memories.embedder.embed([PROBE], is_urgent=False)
        return ""

    async def _try_learning(self) -> str:
        return "late" if (await self.queue()).oldest_seconds > LATE_SECONDS else ""


def traced_request(receipt: Receipt) -> TracedRequest:
    """What of a receipt an operator may see. Pure."""
    return TracedRequest(
        receipt_id=receipt.id,
        user_id=receipt.user_id,
        at=receipt.at,
        status=receipt.status,
        reason=receipt.reason,
        memories=sum(len(note.memory_ids) for note in receipt.notes),
        tokens=sum(note.tokens for note in receipt.notes),
        verdicts=Counter(candidate.verdict for candidate in receipt.candidates),
        timings_ms=receipt.timings_ms,
    )


async def _reason_of(attempt: Coroutine[None, None, str]) -> str:
    """Why the part does not work; "" if it does."""
    try:
        async with asyncio.timeout(HEALTH_SECONDS_MAX):
            return await attempt
    except Unavailable:
        return "unavailable"
    except TimeoutError:
        return "slow"
