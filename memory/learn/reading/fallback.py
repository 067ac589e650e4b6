"""A reader that steps in where the first one gives nothing of use, for that window or those pairs alone.

So it does for one that is too late, after one more try. An outage is passed on: it would have met any request, and
whoever retries sits it out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from memory.errors import Late, Unusable
from memory.model import Claim, Turn
from memory.ports import PairVerdict, StatementPair, StatementReader
from memory.runtime.metrics import Metrics

T = TypeVar("T")


class FallbackReader:
    """`memory.ports.StatementReader`. Claims say themselves which of the two made them."""

    def __init__(self, first: StatementReader, other: StatementReader, *, metrics: Metrics | None = None) -> None:
        self._first = first
        self._other = other
        self._metrics = metrics

    @property
    def name(self) -> str:
        return self._first.name

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        try:
            return await _in_time(lambda: self._first.read(turns, context=context))
        except (Late, Unusable):
            self._count("window")
        return await self._other.read(turns, context=context)

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        try:
            return await _in_time(lambda: self._first.relate(pairs))
        except (Late, Unusable):
            self._count("pair")
        return await self._other.relate(pairs)

    def _count(self, of: str) -> None:
        if self._metrics is not None:
            self._metrics.model_shortfalls.labels(of).inc()


async def _in_time(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, or that of one more try where the first was too late."""
    try:
        return await ask()
    except Late:
        return await ask()


__all__ = ["FallbackReader"]
