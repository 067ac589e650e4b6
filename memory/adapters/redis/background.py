"""Writes for which nobody waits: in order, one at a time, limited in number. What fails is lost, and logged by kind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeAlias

import structlog

from memory.errors import Unavailable

WAITING_MAX = 10_000  # what is posted beyond them is lost
CLOSING_SECONDS = 10.0  # for what still waits on exit
_log = structlog.get_logger(__name__)

Job: TypeAlias = Callable[[], Awaitable[None]]


class RedisBackground:
    """Open with `async with`, shared by the parts of a process; on exit, what waits is written."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Job] = asyncio.Queue(WAITING_MAX)
        self._is_open = False
        self._lost = 0  # since the last job that did not fail
        self._tasks = asyncio.TaskGroup()
        self._worker: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._worker = self._tasks.create_task(self._work())
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._worker is not None  # set on entry
        self._is_open = False
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._waiting.join()
        except TimeoutError:
            _log.warning("redis.writes_lost_on_exit", count=self._waiting.qsize())
        self._worker.cancel()
        await self._tasks.__aexit__(None, None, None)

    def post(self, job: Job) -> None:
        """Never raises, nor waits."""
        if self._is_open and not self._waiting.full():
            self._waiting.put_nowait(job)
        else:
            self._count_lost("closed, or too many are waiting")

    async def written(self) -> None:
        """Wait until all that was posted is written, or lost."""
        await self._waiting.join()

    async def _work(self) -> None:
        while True:
            job = await self._waiting.get()
            try:
                await job()
                self._lost = 0
            except (Unavailable, ValueError, TypeError) as error:  # the server's fault, or a value that cannot be kept
                self._count_lost(type(error).__name__)
            finally:
                self._waiting.task_done()

    def _count_lost(self, reason: str) -> None:
        self._lost += 1
        if self._lost == 1:  # one line for an outage
            _log.warning("redis.write_lost", reason=reason)
