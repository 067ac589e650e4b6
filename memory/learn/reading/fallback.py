"""A reader that uses a second reader if the first gives no usable result, for that window or those pairs only.

The same if the first is too slow twice. Plain `Unavailable` (an outage) is passed on: it would meet any request, and
the caller retries.
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
    """`memory.ports.StatementReader`. The claims state which of the two made them."""

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
    """The answer, with one more attempt if the first was too slow."""
    try:
        return await ask()
    except Late:
        return await ask()
