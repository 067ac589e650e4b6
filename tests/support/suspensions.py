"""Breaks coroutines off where they wait for something: what a crash at any await looks like."""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import itertools
import os
from collections.abc import Collection, Coroutine, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import pytest

Result = TypeVar("Result")
Line = tuple[str, int]
"""A file and a line of it."""

# What the worker runs beside its jobs, in several tasks.
AROUND_THE_JOBS = frozenset("run _serve _drain _every _recover _measure _lease_or_none _kept _extend relieve".split())

LOCK_LOST = frozenset(("_locked", "_repair"))  # what a window does under the user's lock, and when it has lost it
WRITTEN_TO = frozenset(("_current",))  # what a window does for a user who is written to all the time
EVERY = [  # how many awaits further the next crash is
    pytest.param(5, marks=pytest.mark.full("the day is repeated for every fifth await")),
    pytest.param(1, marks=pytest.mark.soak("the day is repeated for every await: minutes")),
]


def crash_seed() -> int:
    """Says which awaits are taken where not all are: others each day. CRASH_SEED repeats those of a day."""
    return int(os.environ.get("CRASH_SEED", date.today().toordinal()))  # noqa: DTZ011, TID251 - a day, not a moment


def crash_points(every: int) -> Iterator[int]:
    """The numbers of suspensions at which to crash, from 1 on without end."""
    return itertools.count(1 + crash_seed() % every, every)


class BrokenOff:
    """Awaitable. Raises `error` inside `coroutine` at its n-th suspension (0: never), and counts them.

    `is_after`: what it waited for still happens, but it never hears of it. `lines` holds where the coroutine and those
    that it awaits stood at each suspension.
    """

    def __init__(
        self, coroutine: Coroutine[Any, Any, Result], *, at: int, error: BaseException, is_after: bool = False
    ) -> None:
        self._coroutine = coroutine
        self._at = at
        self._error = error
        self._is_after = is_after
        self.suspensions = 0
        self.lines: set[Line] = set()

    def __await__(self) -> Generator[Any, Any, Result]:
        inner = self._coroutine.__await__()
        failure: BaseException | None = None
        while True:
            try:
                waited = next(inner) if failure is None else inner.throw(failure)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            failure = None
            self.suspensions += 1
            self.lines |= _lines(self._coroutine)
            is_here = self.suspensions == self._at
            if not is_here or self._is_after:
                failure = yield from _waited_for(waited)
            if is_here:
                failure = self._error


@dataclass(frozen=True, slots=True)
class Place:
    """An await, `async with` or `async for`, and the lines on which it stands."""

    file: str
    function: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.first} in {self.function}"

    def is_among(self, lines: Collection[Line]) -> bool:
        return any((self.file, line) in lines for line in range(self.first, self.last + 1))


def awaits_of(file: Path, *, only: Collection[str] = (), without: Collection[str] = ()) -> list[Place]:
    """Of all functions, of `only` these, or of all but some; without `asyncio.timeout`, which never waits itself."""
    found: list[Place] = []
    for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.AsyncFunctionDef) or function.name in without:
            continue
        if only and function.name not in only:
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.AsyncWith):
                if ast.unparse(node.items[0].context_expr).startswith("asyncio.timeout("):
                    continue
                first, last = node.items[0].context_expr.lineno, node.items[-1].context_expr.end_lineno
            elif isinstance(node, ast.AsyncFor):
                first, last = node.lineno, node.iter.end_lineno
            elif isinstance(node, ast.Await):
                first, last = node.lineno, node.end_lineno
            else:
                continue
            found.append(Place(str(file), function.name, first, last or first))
    return found


class ProcessKilled:
    """Ends everything of one process, the n-th time that any of its tasks waits at a place: no task goes on from there.

    Nothing is cleaned up and nobody is told, as when a process is killed. `bury` it when its parts are closed.
    """

    def __init__(self, place: Place | None, *, number: int = 1) -> None:
        """`place`: None for a process that nobody kills."""
        self._place = place
        self._visits_before = number
        self._death = asyncio.Event()
        self._watched: list[_Watched] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self.is_buried = False

    @property
    def is_dead(self) -> bool:
        return self._death.is_set()

    async def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Until it ends or is killed. All tasks that are made while it runs belong to the process."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._make)
        try:
            main = self._make(loop, coroutine)
            death = asyncio.Task(self._death.wait())
            await asyncio.wait({main, death}, return_when=asyncio.FIRST_COMPLETED)
            death.cancel()
            if not self.is_dead:
                main.result()
        finally:
            loop.set_task_factory(None)

    def look(self, lines: set[Line]) -> bool:
        """Whether it dies here, or is dead."""
        if self._place is not None and not self.is_dead and self._place.is_among(lines):
            self._visits_before -= 1
            if self._visits_before == 0:
                self._death.set()
        return self.is_dead

    async def move_to_dead_letters(self) -> None:
        """Have Python forget what is left of it."""
        self.is_buried = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for watched in self._watched:
            watched.unwind()

    def _make(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        watched = _Watched(coroutine, self)
        task = asyncio.Task(_through(watched), loop=loop, **options)
        self._watched.append(watched)
        self._tasks.append(task)
        return task


class _Watched:
    """A coroutine of a process, which hangs for ever once the process is dead."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], process: ProcessKilled) -> None:
        self._coroutine = coroutine
        self._process = process

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._coroutine.__await__()
        failure: BaseException | None = None
        while not self._process.is_dead:
            try:
                waited = next(inner) if failure is None else inner.throw(failure)
            except StopIteration as end:
                return end.value
            if self._process.look(_lines(self._coroutine)):
                break
            failure = yield from _waited_for(waited)
        while not self._process.is_buried:
            with suppress(asyncio.CancelledError):
                yield from asyncio.get_running_loop().create_future().__await__()
        return None

    def unwind(self) -> None:
        """Whatever it would still do is broken off in turn."""
        while inspect.getcoroutinestate(self._coroutine) == inspect.CORO_SUSPENDED:
            with suppress(BaseException):
                self._coroutine.throw(GeneratorExit())
        self._coroutine.close()


def _waited_for(waited: Any) -> Generator[Any, Any, BaseException | None]:
    """What the loop throws in meanwhile, which goes on to the coroutine."""
    try:
        yield waited
    except BaseException as thrown:  # noqa: BLE001 - as said
        return thrown
    return None


async def _through(awaitable: _Watched) -> Any:
    return await awaitable


def _lines(coroutine: Coroutine[Any, Any, Any]) -> set[Line]:
    return {(frame.f_code.co_filename, frame.f_lineno) for frame in _frames(coroutine)}


def _frames(awaited: Any) -> Iterator[FrameType]:
    """Where a suspended coroutine stands, and those that it awaits, through context managers made of generators."""
    while awaited is not None:
        if inspect.iscoroutine(awaited):
            frame, awaited = awaited.cr_frame, awaited.cr_await
        elif inspect.isasyncgen(awaited):
            frame, awaited = awaited.ag_frame, awaited.ag_await
        elif type(awaited).__name__ in ("async_generator_asend", "async_generator_athrow"):
            frame, awaited = None, next(filter(inspect.isasyncgen, gc.get_referents(awaited)), None)
        else:
            return
        if frame is not None:
            yield frame
