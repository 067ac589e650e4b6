"""A worker on a real turn log and ledger (SQLite), a store in memory, and an embedder without a model.

`Faults` stands between the worker and its ports: it can break off the n-th call, before or after it took effect.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hashing_embedder import HashingEmbedder
from prometheus_client import CollectorRegistry
from turn_logs import START, Deployment, Process

from memory.adapters.in_memory import InMemoryStore
from memory.learn.extraction import Learner, VerbatimLearner
from memory.learn.worker import Worker, WorkerSettings
from memory.metrics import Metrics
from memory.model import Memory, Message, Scope, Turn, TurnStatus
from memory.ports import MemoryFilter


class Faults:
    """Counts calls to the ports, and raises at the n-th one, or at the first one of a name."""

    def __init__(
        self, *, number: int = 0, name: str = "", error: BaseException | None = None, is_after: bool = False
    ) -> None:
        self.calls: list[str] = []
        self._number = number
        self._name = name
        self._error = error
        self._is_after = is_after

    def around(self, port: Any) -> Any:
        return _Faulty(port, self)

    def strike(self, name: str, *, is_after: bool) -> None:
        if not is_after:
            self.calls.append(name)
        is_here = len(self.calls) == self._number or (name == self._name and self.calls.count(name) == 1)
        if self._error is not None and is_here and is_after is self._is_after:
            raise self._error


class Killed(BaseException):
    """What a process that is killed would see, if it saw anything."""


class _Faulty:
    def __init__(self, port: Any, faults: Faults) -> None:
        self._port = port
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)
        if name == "write":
            return self._around_lock(attribute)
        if name in ("touch", "turns", "dimension"):
            return attribute

        async def call(*arguments: Any, **options: Any) -> Any:
            self._faults.strike(name, is_after=False)
            result = await attribute(*arguments, **options)
            self._faults.strike(name, is_after=True)
            return result

        return call

    def _around_lock(self, write: Callable[[str], Any]) -> Callable[[str], Any]:
        @asynccontextmanager
        async def locked(user_id: str) -> AsyncIterator[Any]:
            self._faults.strike("lock", is_after=False)
            async with write(user_id) as held:
                self._faults.strike("lock", is_after=True)
                yield _Faulty(held, self._faults)
                self._faults.strike("unlock", is_after=False)
            self._faults.strike("unlock", is_after=True)

        return locked


@dataclass
class Bench:
    """One deployment under learning. The clock stands still until a test moves it."""

    deployment: Deployment
    store: InMemoryStore = field(default_factory=lambda: InMemoryStore(dimension=HashingEmbedder().dimension))
    embedder: HashingEmbedder = field(default_factory=HashingEmbedder)
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def worker(
        self,
        process: Process,
        *,
        faults: Faults | None = None,
        learner: Learner | None = None,
        settings: WorkerSettings | None = None,
    ) -> Worker:
        through = (faults or Faults()).around
        return Worker(
            turn_log=through(process.log),
            ledger=through(process.ledger),
            store=through(self.store),
            embedder=through(self.embedder),
            learner=learner or VerbatimLearner(),
            clock=self.deployment.clock,
            jitter=lambda: 1.0,
            metrics=self.metrics,
            settings=settings,
        )

    async def tell(
        self,
        process: Process,
        *messages: str,
        answer: str = "Noted.",
        user: str = "ann",
        session: str = "s1",
        project: str = "",
        status: TurnStatus = TurnStatus.CLOSED,
    ) -> Turn:
        """A finished turn in the log, one second after the one before."""
        number = next(self.numbers)
        turn = Turn(
            id=f"turn-{number}",
            scope=Scope(user, project_id=project, session_id=session),
            at=START + number,
            messages=tuple(Message("user", text) for text in messages),
            status=status,
            answer=answer,
            answered_at=START + number,
        )
        await process.log.append(turn)
        return turn

    async def memories(self, user: str = "ann", *, project: str = "", status: Any = "any") -> list[Memory]:
        where = MemoryFilter(user, project_id=project, status=None if status == "any" else status)
        return [record.memory for record in await self.store.load(where, limit=1_000)]

    async def contents(self, user: str = "ann") -> list[str]:
        return sorted(memory.content for memory in await self.memories(user))

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0
