"""A worker on a real turn log and ledger (SQLite), a store in memory, and an embedder without a model.

`Faults` stands between the worker and its ports: it can break off the n-th call, before or after it took effect.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from absent_stores import memory_bank
from hashing_embedder import HashingEmbedder
from plain_reader import PlainReader
from prometheus_client import CollectorRegistry
from turn_logs import START, Deployment, Process

from memory.adapters.in_memory import InMemoryStore
from memory.learn.readers import Readers
from memory.learn.worker import Worker, WorkerSettings
from memory.model import Change, ChangeKind, Claim, Memory, MemoryStatus, Message, Scope, Turn, TurnStatus
from memory.model.wordings import Corrector, reworded
from memory.ports import MemoryBank, MemoryFilter, StatementReader, UserLedger
from memory.recall.ranking.corpus import Corpus
from memory.recall.working_set.corpus_memories import CorpusMemories
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry
from memory.service.erasure import Erasure

WATCHED_STORES = ("notes", "receipts", "usage_counts", "profiles", "summaries", "opt_outs")


class Faults:
    """Counts calls to the ports, and raises at the n-th one, or at the n-th one of a name.

    Without a number it is the first. `is_slow`: every call suspends its caller before and after it takes effect.
    `callers` holds the lines, by file, that were waiting for a call.
    """

    def __init__(
        self,
        *,
        number: int = 0,
        name: str = "",
        error: BaseException | None = None,
        is_after: bool = False,
        is_slow: bool = False,
    ) -> None:
        self.calls: list[str] = []
        self.callers: set[tuple[str, int]] = set()
        self._is_slow = is_slow
        self._number = number
        self._name = name
        self._error = error
        self._is_after = is_after

    def around(self, port: Any) -> Any:
        return _Faulty(port, self)

    async def strike(self, name: str, *, is_after: bool) -> None:
        if not is_after:
            self.calls.append(name)
            frame: FrameType | None = sys._getframe(1)
            while frame is not None:
                self.callers.add((frame.f_code.co_filename, frame.f_lineno))
                frame = frame.f_back
        if self._is_slow:
            await asyncio.sleep(0)
        calls = self.calls if not self._name else [call for call in self.calls if call == self._name]
        is_here = self._name in ("", name) and len(calls) == (self._number or 1)
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
        if name in ("touch", "check_term") or not callable(attribute):
            return attribute
        if name == "turns":
            return self._around_turns(attribute)

        async def call(*arguments: Any, **options: Any) -> Any:
            await self._faults.strike(name, is_after=False)
            result = await attribute(*arguments, **options)
            await self._faults.strike(name, is_after=True)
            return _Faulty(result, self._faults) if isinstance(result, CorpusMemories) else result

        return call

    def _around_turns(self, turns: Callable[..., AsyncIterator[Turn]]) -> Callable[..., AsyncIterator[Turn]]:
        async def read(*arguments: Any, **options: Any) -> AsyncIterator[Turn]:
            await self._faults.strike("turns", is_after=False)
            async for turn in turns(*arguments, **options):
                yield turn

        return read

    def _around_lock(self, write: Callable[[str], Any]) -> Callable[[str], Any]:
        @asynccontextmanager
        async def locked(user_id: str) -> AsyncIterator[Any]:
            await self._faults.strike("lock", is_after=False)
            async with write(user_id) as held:
                await self._faults.strike("lock", is_after=True)
                yield _Faulty(held, self._faults)
                await self._faults.strike("unlock", is_after=False)
            await self._faults.strike("unlock", is_after=True)

        return locked


@dataclass(frozen=True)
class AtHand:
    """`memory.ports.UserMemories`: always there and current; never, without a store."""

    store: InMemoryStore | None
    ledger: UserLedger

    async def as_of(self, user_id: str, revision: int | None = None) -> CorpusMemories | None:
        if self.store is None:
            return None
        number = (await self.ledger.revision(user_id)).number
        if revision is not None and (number != revision or number % 2):
            return None
        rows = await self.store.load(MemoryFilter(user_id, status=None, with_archived=False), limit=10_000)
        return CorpusMemories(user_id, Corpus(rows, dimension=len(rows[0].vector) if rows else 1))


@dataclass
class Bench:
    """One deployment under learning. The clock stands still until a test moves it."""

    deployment: Deployment
    store: InMemoryStore = field(default_factory=lambda: InMemoryStore(dimension=HashingEmbedder().dimension))
    embedder: HashingEmbedder = field(default_factory=HashingEmbedder)
    has_sets: bool = True  # the worker finds the users' memories at hand; else it asks the store
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def worker(
        self,
        process: Process,
        *,
        faults: Faults | None = None,
        reader: StatementReader | None = None,
        model: StatementReader | None = None,
        readers: Readers | None = None,
        settings: WorkerSettings | None = None,
        jitter: float = 1.0,
    ) -> Worker:
        """`reader` is always ready and stands in for `model`, which, where there is one, reads windows.

        `readers`: instead of both, and nothing stands between them and the worker.
        """
        through, stores = (faults or Faults()).around, process.stores
        ready = through(reader or PlainReader())
        return Worker(
            turn_log=through(process.log),
            memories=MemoryBank(
                through(self.store),
                through(process.ledger),
                through(self.embedder),
                through(AtHand(self.store if self.has_sets else None, process.ledger)),
            ),
            stores=replace(stores, **{name: through(getattr(stores, name)) for name in WATCHED_STORES}),
            readers=readers or Readers(ready, None if model is None else through(model)),
            telemetry=Telemetry(self.deployment.clock, self.metrics, lambda: jitter),
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
        receipt_id: str = "",
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
            receipt_id=receipt_id,
        )
        await process.log.append(turn)
        return turn

    async def learn(self, process: Process, *said: str, worker: Worker | None = None, **told: Any) -> list[Turn]:
        """A turn for each, `told` as `tell` does; then all that is due is learnt, by that worker or a plain one."""
        turns = [await self.tell(process, one, **told) for one in said]
        await (worker or self.worker(process)).work_off()
        return turns

    @asynccontextmanager
    async def later(self, seconds: float) -> AsyncIterator[Process]:
        """Another process, so much later."""
        self.deployment.clock.now += seconds
        async with self.deployment.start() as process:
            yield process

    async def correct(self, said: str, content: str) -> None:
        """Another memory of ann's: it said the same as that one before, and then was corrected."""
        before = next(memory for memory in await self.memories() if memory.content == said)
        after = reworded(before, replace(before, id="corrected", content=content), by=Corrector.USER)
        vectors = await HashingEmbedder().embed([content], is_urgent=False)
        await self.store.apply("ann", [Change(ChangeKind.CREATE, after)], vectors)

    async def memories(self, user: str = "ann", *, project: str = "", status: Any = "any") -> list[Memory]:
        where = MemoryFilter(user, project_id=project, status=None if status == "any" else status)
        return [record.memory for record in await self.store.load(where, limit=1_000)]

    async def raw_words(self, user: str = "ann") -> list[str]:
        rows = await self.store.load(MemoryFilter(user, status=MemoryStatus.RAW), limit=1_000)
        return sorted(record.memory.content for record in rows)

    async def contents(self, user: str = "ann", *, status: Any = "any") -> list[str]:
        return sorted(memory.content for memory in await self.memories(user, status=status))

    async def active(self, user: str = "ann") -> list[str]:
        return await self.contents(user, status=MemoryStatus.ACTIVE)

    def erasure(self, process: Process) -> Erasure:
        memories = memory_bank(self.store, process.ledger, self.embedder)
        return Erasure(memories=memories, turn_log=process.log, stores=process.stores, clock=self.deployment.clock)

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def running(*workers: Worker) -> AsyncIterator[None]:
    """They run until the block ends, and then finish what is under way."""
    until = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker.run(until))
        yield
        until.set()


async def happens(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


class Moody(PlainReader):
    """A model that meets one trouble after the other with ann's turns, then reads; `at`: when it was asked."""

    def __init__(self, bench: Bench, *troubles: Exception) -> None:
        super().__init__()
        self.at: list[float] = []
        self._clock = bench.deployment.clock
        self._troubles = list(troubles)

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        if turns[0].scope.user_id == "ann":
            self.at.append(self._clock())
            if self._troubles:
                raise self._troubles.pop(0)
        return await super().read(turns, context=context)
