"""Task groups: a single error is raised as it is, and background work that fails ends nothing else; its pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import structlog

log = structlog.get_logger(__name__)

T = TypeVar("T")


class ErrorBoundary(Protocol):
    """Awaits `work` and turns any error into None, after reporting it."""

    async def __call__(self, work: Coroutine[Any, Any, T]) -> T | None: ...


@contextmanager
def unwrapped() -> Iterator[None]:
    """A single error of a task group, such as a bad setting, is raised without the group.

    An error that a task raised, and that was raised again where the task was awaited, counts once.
    """
    try:
        yield
    except BaseExceptionGroup as group_error:
        first, *others = group_error.exceptions
        if any(other is not first for other in others):
            raise
        raise first from None


async def started_again(work: Callable[[], Awaitable[None]], *, name: str, pause: float) -> None:
    """Run `work` until it returns; after an error, which is logged, again in `pause` seconds."""

    async def once() -> None:
        with unwrapped():
            await work()

    while True:
        (outcome,) = await asyncio.gather(once(), return_exceptions=True)
        if not isinstance(outcome, Exception):
            return
        log.error("background work failed and is started again", work=name, error=type(outcome).__name__)
        await asyncio.sleep(pause)


async def pause_before(event: asyncio.Event, seconds: float | None) -> None:
    """Wait for the event, at most `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
