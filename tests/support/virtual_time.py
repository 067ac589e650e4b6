"""A clock for tests of what waits: it stands still while anybody works, and goes on at once where everybody waits."""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

SECONDS_MAX = 3_600.0  # what has not ended by then never ends
P = ParamSpec("P")


class _Skipping(selectors.DefaultSelector):
    """Waits for nothing but the clock: tests in virtual time have no sockets."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everybody waits for somebody else"
        self.now += timeout
        assert self.now < SECONDS_MAX, "it does not end"
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Skipping()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """The test on a loop whose seconds take no time; it begins at 0."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


def now() -> float:
    """Of the running loop."""
    return asyncio.get_running_loop().time()
