"""One thread per process that writes, with group commit: all jobs waiting when it starts go into one transaction.

So a burst costs one commit instead of hundreds, jobs of one process never meet each other, and they run in the order in
which they came. No job waits on purpose, except posted ones, for which nobody waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import msgspec

from memory.adapters.sql.database import CALL_SECONDS_MAX, Job
from memory.errors import MemproxyError, Unavailable

BATCH_JOBS_MAX = 256  # per transaction, so that other processes get their turn
WAITING_JOBS_MAX = 2_000  # about ten seconds of a busy filter; beyond it calls are refused
POST_SECONDS = 0.01  # jobs posted within this time wake the writer once

OF_ONE_JOB = (  # what code raises that is wrong, or gets a row that is
    *(MemproxyError, msgspec.MsgspecError, ValueError, TypeError, LookupError, ArithmeticError),
    *(AssertionError, AttributeError, NameError, RuntimeError, OSError),
)

Result = TypeVar("Result")


@dataclass(slots=True)
class Entry(Generic[Result]):
    """A job in the queue. It has an outcome at the latest when its own drain has run."""

    job: Job[Result]
    results: list[Result]
    failure: BaseException | None = None
    over: Callable[[], None] | None = None  # called in the writer's thread when the job is done

    def outcome(self) -> Result:
        if self.failure is not None:
            raise self.failure
        if not self.results:
            raise Unavailable("turn_log", "the transaction was abandoned")
        return self.results[0]


Batch: TypeAlias = Sequence[Entry[object]]


class WritesJobs:
    """What both runners have: a writer, while they are open."""

    _writer: JobWriter | None = None

    async def write(self, job: Job[Result]) -> Result:
        """Run `job` in a transaction, committed on return. Raises `Unavailable`, and what the job raises."""
        if self._writer is None:
            raise Unavailable("turn_log", "it is closed")
        return await self._writer.write(job)

    def post(self, job: Job[object], *, then: Callable[[], None] | None = None) -> None:
        """As `memory.adapters.sql.database.SqlDatabase` says."""
        if self._writer is not None:
            self._writer.post(job, then)
        elif then is not None:
            then()


class JobWriter:
    """`commit` runs a batch in the writer's thread, and gives each entry a result or a failure; it raises nothing."""

    def __init__(self, commit: Callable[[Batch], None]) -> None:
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="turn-log-writer")
        self._commit = commit
        self._waiting: deque[Entry[object]] = deque()
        self._posting: asyncio.TimerHandle | None = None
        self._is_open = True

    async def close(self, last: Callable[[], None]) -> None:
        """Pending jobs are still written, then `last` runs in the thread."""
        self._is_open = False
        if self._posting is not None:
            self._posting.cancel()
            self.thread.submit(self._drain)
        await asyncio.get_running_loop().run_in_executor(self.thread, last)
        self.thread.shutdown(wait=False)

    async def write(self, job: Job[Result]) -> Result:
        """Each entry starts a drain, which handles it at the latest; usually an earlier one does."""
        if not self._is_open:
            raise Unavailable("turn_log", "it is closed")
        if len(self._waiting) >= WAITING_JOBS_MAX:
            raise Unavailable("turn_log", f"more than {WAITING_JOBS_MAX} writes are waiting")
        entry: Entry[Result] = Entry(job, [])
        self._waiting.append(entry)  # type: ignore[arg-type]  # the queue never looks into a result
        await bounded(self.thread.submit(self._drain))
        return entry.outcome()

    def post(self, job: Job[object], then: Callable[[], None] | None) -> None:
        if not self._is_open or len(self._waiting) >= WAITING_JOBS_MAX:
            if then is not None:
                then()
            return
        loop = asyncio.get_running_loop()

        def over() -> None:
            if then is not None and not loop.is_closed():
                loop.call_soon_threadsafe(then)

        self._waiting.append(Entry(job, [], over=over))
        if self._posting is None:
            self._posting = loop.call_later(POST_SECONDS, self._post)

    def _post(self) -> None:
        self._posting = None
        self.thread.submit(self._drain)

    def _drain(self) -> None:
        """Run everything that waits, including new jobs, in as many transactions as necessary."""
        while batch := [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_JOBS_MAX))]:
            self._commit(batch)
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


__all__ = ["OF_ONE_JOB", "Batch", "Entry", "JobWriter", "WritesJobs", "bounded"]
