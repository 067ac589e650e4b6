"""Breaks a coroutine off at the n-th moment at which it waits for something: what a crash at any await looks like."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

Result = TypeVar("Result")


class BrokenOff:
    """Awaitable. Raises `error` inside `coroutine` at its n-th suspension (0: never), and counts them.

    `is_after`: what it waited for still happens, but it never hears of it. `lines` holds, by file, where the coroutine
    and those that it awaits stood at each suspension, as far as Python shows: not inside a context manager of theirs.
    """

    def __init__(
        self, coroutine: Coroutine[Any, Any, Result], *, at: int, error: BaseException, is_after: bool = False
    ) -> None:
        self._coroutine = coroutine
        self._at = at
        self._error = error
        self._is_after = is_after
        self.suspensions = 0
        self.lines: set[tuple[str, int]] = set()

    def __await__(self) -> Generator[Any, Any, Result]:
        inner = self._coroutine.__await__()
        failure: BaseException | None = None
        while True:
            try:
                waited = next(inner) if failure is None else inner.throw(failure)
            except StopIteration as end:
                return end.value
            failure = None
            self.suspensions += 1
            self._look()
            is_here = self.suspensions == self._at
            if not is_here or self._is_after:
                try:
                    yield waited
                except BaseException as error:  # noqa: BLE001 (whatever the loop throws in goes on to the coroutine)
                    failure = error
            if is_here:
                failure = self._error

    def _look(self) -> None:
        awaited: Any = self._coroutine
        while inspect.iscoroutine(awaited):
            if awaited.cr_frame is not None:
                self.lines.add((awaited.cr_frame.f_code.co_filename, awaited.cr_frame.f_lineno))
            awaited = awaited.cr_await
