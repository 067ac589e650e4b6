"""Selects the reader: the trained reader is always available; a chat model reads windows once it passed the exam.

The exam runs in the background. Until it is passed, and if it fails, the trained reader works; log and metric report
it. An unreachable model is asked again with growing pauses; one that answers too slowly is asked a few times and then
counts as failed. Never delays a window, and logs no content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from memory.errors import Late, Unavailable, Unusable
from memory.learn.reading.assembly import judged_alone
from memory.model import Claim, Turn
from memory.ports import FrameMark, OrderReach, PairRelation, PairVerdict, ReadyReader, StatementPair, StatementReader
from memory.ports.reading import ExamResult
from memory.runtime.metrics import Metrics

T = TypeVar("T")

RETRY_SECONDS = 5.0  # doubled each time
RETRY_SECONDS_MAX = 600.0
LATE_TRIES_MAX = 6  # with the pauses between them some minutes, in which a server loads its model
TOO_LATE = "no answer in time"

log = structlog.get_logger()

Sit = Callable[[], Awaitable[tuple[StatementReader, ExamResult]]]
"""Returns the reader and its exam result, new or stored. Raises `Unavailable`."""


class Readers:
    """`ready` always answers at once; `first` reads windows, and is `ready` until a model has passed."""

    def __init__(self, ready: ReadyReader, first: StatementReader | None = None) -> None:
        self.ready = ready
        self.first: StatementReader = first or ready

    @property
    def is_slow(self) -> bool:
        """Whether windows are read by slow, non-deterministic calls, which are batched and whose results are stored."""
        return self.first is not self.ready


class OffReader:
    """The `ReadyReader` of the setting `off`: it finds nothing."""

    name = "off"

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        return []

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        return [PairVerdict(PairRelation.UNRELATED, 1.0) for _ in pairs]

    async def frames(self, turns: Sequence[Turn]) -> list[FrameMark]:
        return []

    async def reaches(self, orders: Sequence[str]) -> list[OrderReach]:
        return [OrderReach.TOPIC for _ in orders]

    async def leaning(self, texts: Sequence[str]) -> list[float]:
        return [0.0 for _ in texts]


async def examine(readers: Readers, sit: Sit, *, metrics: Metrics) -> bool:
    """Return once the model has passed (it then reads windows) or failed; whether it passed."""
    pause, late = RETRY_SECONDS, 0
    while True:
        try:
            reader, result = await sit()
            break
        except Unavailable as error:
            late += isinstance(error, Late)
        if late >= LATE_TRIES_MAX:
            metrics.reader_exam_score.set(0.0)
            log.warning("the model failed the exam: the trained reader goes on reading", failed=[TOO_LATE], tries=late)
            return False
        await asyncio.sleep(pause)
        pause = min(2 * pause, RETRY_SECONDS_MAX)
    metrics.reader_exam_score.set(result.score)
    if result.passed:
        readers.first = reader
        log.info("the model passed the exam: it reads from now on", reader=reader.name, score=result.score)
    else:
        log.warning(
            "the model failed the exam: the trained reader goes on reading",
            reader=reader.name,
            score=result.score,
            failed=list(result.failures),
        )
    return result.passed


class FallbackReader:
    """`memory.ports.StatementReader` that uses a second reader if the first gives no usable result, for that window or
    those pairs only; the same if the first is too slow twice. The claims state which of the two made them. The second
    one judges whether words that the first left as they are can be understood.

    Plain `Unavailable` (an outage) is passed on: it would meet any request, and the caller retries.
    """

    def __init__(self, first: StatementReader, other: ReadyReader, *, metrics: Metrics) -> None:
        self.name = first.name
        self._first = first
        self._other = other
        self._metrics = metrics

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        claims = await self._asked("window", lambda reader: reader.read(turns, context=context))
        if any(claim.made_by == self._other.name for claim in claims):
            return claims  # judged within their message
        shares = await self._other.leaning([claim.evidence.words for claim in claims])
        return [judged_alone(claim, share) for claim, share in zip(claims, shares, strict=True)]

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        return await self._asked("pair", lambda reader: reader.relate(pairs))

    async def _asked(self, of: str, ask: Callable[[StatementReader], Awaitable[T]]) -> T:
        try:
            try:
                return await ask(self._first)
            except Late:
                return await ask(self._first)
        except (Late, Unusable):
            self._metrics.model_shortfalls.labels(of).inc()
        return await ask(self._other)
