"""One thread per process that writes, with group commit: all jobs waiting when it starts go into one transaction.

So a burst costs one commit instead of hundreds, jobs of one process never meet each other, and they run in the order in
which they came. Jobs that are written at the same time are one transaction; posted ones, for which nobody waits, go
with the next one, or after `within` seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeAlias, TypeVar

import msgspec

from memory.adapters.sql.statements import Connection
from memory.errors import MemproxyError, Unavailable

CALL_SECONDS_MAX = 10.0  # no caller waits longer for a job
SOON_SECONDS = 0.01  # of posted jobs: those of this time are one transaction
BATCH_JOBS_MAX = 256  # per transaction, so that other processes get their turn
WAITING_JOBS_MAX = 2_000  # about ten seconds of a busy filter; beyond it calls are refused

OF_ONE_JOB = (  # what code raises that is wrong, or gets a row that is
    *(MemproxyError, msgspec.MsgspecError, ValueError, TypeError, LookupError, ArithmeticError),
    *(AssertionError, AttributeError, NameError, RuntimeError, OSError),
)

Result = TypeVar("Result")
Job: TypeAlias = Callable[[Connection], Result]


@dataclass(slots=True)
class Entry(Generic[Result]):
    """A job in the queue. It has an outcome at the latest when its own drain has run."""

    job: Job[Result]
    results: list[Result]
    failure: BaseException | None = None
    over: Callable[[], None] | None = None  # called in the writer's thread when the job is done


Batch: TypeAlias = Sequence[Entry[object]]


class JobWriter:
    """`commit` runs a batch in the writer's thread, and gives each entry a result or a failure; it raises nothing."""

    def __init__(self, commit: Callable[[Batch], None]) -> None:
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="turn-log-writer")
        self._commit = commit
        self._waiting: deque[Entry[object]] = deque()
        self._starting: asyncio.Handle | None = None
        self._starts_at = 0.0  # in the loop's time

    async def close(self, last: Callable[[], None]) -> None:
        """Pending jobs are still written, then `last` runs in the thread. Nobody may write or post any more."""
        if self._starting is not None:
            self._starting.cancel()
            self._start()
        await asyncio.get_running_loop().run_in_executor(self.thread, last)
        self.thread.shutdown(wait=False)

    async def write(self, job: Job[Result]) -> Result:
        if len(self._waiting) >= WAITING_JOBS_MAX:
            raise Unavailable("turn_log", f"more than {WAITING_JOBS_MAX} writes are waiting")
        done: Future[None] = Future()
        entry: Entry[Result] = Entry(job, [], over=partial(done.set_result, None))
        self._waiting.append(entry)  # type: ignore[arg-type]  # the queue never looks into a result
        self._start_within(0.0)
        await bounded(done)
        if entry.failure is not None:
            raise entry.failure
        if not entry.results:
            raise Unavailable("turn_log", "the transaction was abandoned")
        return entry.results[0]

    def post(self, job: Job[object], within: float, then: Callable[[], None] | None) -> None:
        if len(self._waiting) >= WAITING_JOBS_MAX:
            if then is not None:
                then()
            return
        loop = asyncio.get_running_loop()

        def over() -> None:
            if then is not None and not loop.is_closed():
                loop.call_soon_threadsafe(then)

        self._waiting.append(Entry(job, [], over=over))
        self._start_within(within)

    def _start_within(self, seconds: float) -> None:
        """Run all that waits by then at the latest."""
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        if self._starting is not None:
            if self._starts_at <= at:
                return
            self._starting.cancel()
        self._starts_at = at
        self._starting = loop.call_later(seconds, self._start) if seconds else loop.call_soon(self._start)

    def _start(self) -> None:
        self._starting = None
        self.thread.submit(self._drain)

    def _drain(self) -> None:
        """Run all that waits now, in as many transactions as necessary. What comes meanwhile has its own time."""
        left = len(self._waiting)
        while batch := [self._waiting.popleft() for _ in range(min(left, BATCH_JOBS_MAX))]:
            left -= len(batch)
            try:
                self._commit(batch)
            finally:
                for entry in batch:
                    if entry.over is not None:
                        entry.over()


async def bounded(future: Future[Result]) -> Result:
    """Wait for the thread, at most `CALL_SECONDS_MAX`. The job runs in any case, also if the caller is cancelled."""
    try:
        async with asyncio.timeout(CALL_SECONDS_MAX):
            return await asyncio.shield(asyncio.wrap_future(future))
    except TimeoutError as error:
        raise Unavailable("turn_log", f"no answer within {CALL_SECONDS_MAX:.0f} s") from error
