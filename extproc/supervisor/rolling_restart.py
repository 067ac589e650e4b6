"""Restarts the parts of a running `up` one after the other, each only while all others work.

Envoy goes on: it holds the connections of clients. So does the small local model, whose answers would break off. What
is asked for and what came of it stands in a file of the data directory, by which `memproxy restart` and `up` meet.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec
from structlog.typing import FilteringBoundLogger

from extproc.supervisor.locks_and_ports import CannotStart, owner_of
from extproc.supervisor.processes import ChildProcess
from memory.errors import Unavailable
from memory.runtime.release import RUNNING, Release
from memory.typed import from_json

RESTART_SIGNAL = signal.SIGUSR1  # not SIGHUP: a terminal that is closed ends `up`
STATE_FILE = "restart.json"
ORDER = ("filter", "worker", "api", "milvus")  # the store last: by then filters hold the users who are active
BACK_SECONDS_MAX = 300.0  # for one part to work again; as at the first start
POLL_SECONDS = 0.1
REPORT_SECONDS = 0.2

UNKNOWN = Release("an unknown release")  # of an `up` that does not state it
State = Literal["idle", "running", "done", "failed"]


@dataclass(frozen=True, slots=True)
class RestartState:
    """`pid`: of the `up` that wrote it. `number`: how many restarts it has begun. `part`: the one in progress, or that
    did not return. `release`: what that `up` itself runs, which no restart of its parts changes.
    """

    pid: int
    number: int = 0
    state: State = "idle"
    part: str = ""
    release: Release = UNKNOWN


class RollingRestart:
    """One at a time; a request during one is answered by it."""

    def __init__(
        self,
        parts: Mapping[str, ChildProcess],
        *,
        missing: Callable[[], Awaitable[Sequence[str]]],
        forget: Callable[[int], None],
        data_dir: Path,
        logger: FilteringBoundLogger,
    ) -> None:
        """`missing`: names of the parts that do not work. `forget`: called with the pid of each that has ended."""
        self._parts = parts
        self._missing = missing
        self._forget = forget
        self._file = data_dir / STATE_FILE
        self._logger = logger
        self._requested = asyncio.Event()
        self._state = RestartState(os.getpid())

    def request(self) -> None:
        self._requested.set()

    async def run(self) -> None:
        self._write(RestartState(os.getpid()))
        try:
            while True:
                await self._requested.wait()
                await self._restart_all(self._state.number + 1)
                self._requested.clear()
        finally:
            self._file.unlink(missing_ok=True)

    async def _restart_all(self, number: int) -> None:
        for name in restart_order(list(self._parts)):
            self._write(RestartState(os.getpid(), number, "running", name))
            if not await self._all_work():
                self._fail(number, (await self._missing() or [name])[0])
                return
            self._logger.info("restarting", part=name)
            self._forget(await self._parts[name].restart())
            if not await self._all_work():
                self._fail(number, name)
                return
        self._write(RestartState(os.getpid(), number, "done"))
        self._logger.info("all parts were restarted")

    def _fail(self, number: int, part: str) -> None:
        self._logger.error("the restart has stopped: a part does not work", part=part)
        self._write(RestartState(os.getpid(), number, "failed", part))

    async def _all_work(self) -> bool:
        """Wait until every part works, as Envoy sees it too; False if that takes too long."""
        try:
            async with asyncio.timeout(BACK_SECONDS_MAX):
                while await self._missing():  # noqa: ASYNC110 - a probe tells of no event
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            return False
        return True

    def _write(self, state: RestartState) -> None:
        """Whoever asked has to look for itself if the disk is full."""
        self._state = state
        publish(self._file, asdict(replace(state, release=RUNNING)), self._logger)


def publish(file: Path, stated: Mapping[str, object], logger: FilteringBoundLogger) -> None:
    """Atomically, as JSON: whoever sees the file can read all of it. If it cannot be written, only the log says so."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_text(json.dumps(stated) + "\n", encoding="ascii")
        partial.replace(file)
    except OSError as error:
        logger.error("a file that tells of this run cannot be written", file=str(file), reason=error.strerror)


def restart_order(names: Sequence[str]) -> list[str]:
    """The parts that are restarted, in their order: `filter-0`, `filter-1`, `worker-0` …"""
    kinds = {name: name.partition("-")[0] for name in names}
    return sorted((name for name in names if kinds[name] in ORDER), key=lambda name: ORDER.index(kinds[name]))


def request_restart(data_dir: Path, *, report: Callable[[str], None]) -> RestartState:
    """Ask the `up` of this directory to restart its parts, and wait until that is over: its state then. Blocks.

    Raises `CannotStart` if none is ready, `Unavailable` if a part does not return.
    """
    before = _ready_state(data_dir)
    os.kill(before.pid, RESTART_SIGNAL)
    awaited = before.number + (before.state != "running")
    part = ""
    while True:
        state = restart_state(data_dir)
        if state is None or owner_of(data_dir) != before.pid:
            raise Unavailable("memproxy up", "it was stopped during the restart")
        if state.number >= awaited and state.part != part:
            part = state.part
            if state.state == "running":
                report(f"restarting {part}")
        if state.number >= awaited and state.state == "failed":
            raise Unavailable(state.part, "it does not work: the restart has stopped there; see the log of `up`")
        if state.number >= awaited and state.state == "done":
            report("all parts were restarted")
            return state
        time.sleep(REPORT_SECONDS)


def _ready_state(data_dir: Path) -> RestartState:
    """Of an `up` that takes the signal: another holder of the lock would be ended by it."""
    owner, state = owner_of(data_dir), restart_state(data_dir)
    if not owner:
        raise CannotStart(f"no `memproxy up` runs on {data_dir}: name its directory with --data-dir")
    if state is None or state.pid != owner:
        raise CannotStart(f"pid {owner}, which uses {data_dir}, is not ready yet, or is no `memproxy up`: try later")
    return state


def restart_state(data_dir: Path) -> RestartState | None:
    """What the `up` of this directory has written; None if none is ready."""
    try:
        return from_json((data_dir / STATE_FILE).read_bytes(), RestartState)
    except (OSError, msgspec.MsgspecError):
        return None
