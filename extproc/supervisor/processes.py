"""Runs one part as a child process: starts it, reads its output, restarts it when it dies, stops it.

A child never outlives us, even if we are killed with -9: the kernel kills it when our main thread ends. It does not
receive the terminal's Ctrl-C (it has its own session): we decide which part stops when.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from structlog.typing import FilteringBoundLogger

from extproc.supervisor import parent_death_signal
from extproc.supervisor.log_lines import LogLines, PartLines
from memory.runtime.task_groups import pause_before

BACKOFF_FIRST_SECONDS = 0.2
BACKOFF_MAX_SECONDS = 10.0
STEADY_SECONDS = 10.0  # after running for so long, the back-off starts from the beginning
READ_BYTES = 65_536
LAST_READS_MAX = 16  # the output of a dead part fits into its pipe; anything longer comes from another process


@dataclass(frozen=True, slots=True)
class ProcessCommand:
    """How a part is started and stopped. `niceness`: 0..19, the lower priority relative to the request path."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)  # contains secrets
    niceness: int = 0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 5.0  # time between the stop signal and SIGKILL


OnDeath: TypeAlias = "Callable[[ChildProcess, int], None]"
"""Called with the part that died and its pid (0: it could not be started)."""


class ChildProcess:
    def __init__(
        self, command: ProcessCommand, *, log: LogLines, logger: FilteringBoundLogger, on_death: OnDeath
    ) -> None:
        self.command = command
        self.name = command.name
        self.deaths = 0
        self.exit_code: int | None = None
        self._lines = PartLines(command.name, log)
        self.tail: Sequence[str] = self._lines.tail  # its last lines of output, across restarts
        self._logger = logger
        self._on_death = on_death
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._is_restarting = False

    @property
    def last_words(self) -> str:
        """Its `tail`, for a message."""
        return "Its last lines:\n" + ("\n".join(f"  {line}" for line in self.tail) or "  (it said nothing)")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.is_running else None

    async def keep_running(self) -> None:
        """Start it, and restart it when it dies, until `stop`. It is killed on cancellation."""
        delay = BACKOFF_FIRST_SECONDS
        while not self._stopping.is_set():
            try:
                pid, code, lived = await self._live_once()
                ending = _reading(code)
            except OSError as error:  # no memory, no process slot, or a missing program
                pid, code, lived, ending = 0, -1, 0.0, f"not started: {error}"
            if self._stopping.is_set():
                return
            if self._is_restarting:
                self._is_restarting, delay = False, BACKOFF_FIRST_SECONDS
                continue
            self.deaths += 1
            self.exit_code = code
            self._on_death(self, pid)
            delay = BACKOFF_FIRST_SECONDS if lived >= STEADY_SECONDS else delay
            self._logger.warning("part died", part=self.name, pid=pid, exit=ending, restart_in_seconds=delay)
            await pause_before(self._stopping, delay)
            delay = min(delay * 2, BACKOFF_MAX_SECONDS)

    async def stop(self, *, at_once: bool = False) -> None:
        """Send the stop signal, wait for `stop_seconds`, then kill; `at_once`: kill. Returns when it has ended."""
        self._stopping.set()
        if not at_once:
            await self._end()
        elif self._process is not None and self._process.returncode is None:
            self.kill()
            await self._process.wait()

    async def restart(self) -> int:
        """Stop it as `stop` does; `keep_running` starts it again at once. The pid that has ended; 0: it did not run."""
        if self._stopping.is_set() or not self.is_running:
            return 0
        self._is_restarting = True
        return await self._end()

    async def _end(self) -> int:
        process = self._process
        if process is None or process.returncode is not None:
            return 0
        with suppress(ProcessLookupError):
            os.kill(process.pid, self.command.stop_signal)
        try:
            async with asyncio.timeout(self.command.stop_seconds):
                await process.wait()
        except TimeoutError:
            self._logger.warning("part did not stop in time: killed", part=self.name)
            _kill_session(process.pid)
            await process.wait()
        return process.pid

    def kill(self) -> None:
        """Kill without restart. `stop` still waits for the end."""
        self._stopping.set()
        if self.pid is not None:
            _kill_session(self.pid)

    async def _live_once(self) -> tuple[int, int, float]:
        """Run it once: its pid, exit code and the seconds it ran."""
        loop = asyncio.get_running_loop()
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(writing, True)  # a part that prints faster than we read has to wait, and does not fail
        try:
            self._process = process = await _spawn(self.command, writing)
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        started_at = loop.time()
        if self._stopping.is_set():  # requested while it was starting
            _kill_session(process.pid)
        loop.add_reader(reading, self._read, reading)
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                _kill_session(process.pid)
            loop.remove_reader(reading)
            for _ in range(LAST_READS_MAX):
                self._read(reading)
            os.close(reading)
            self._lines.end()
        return process.pid, code, loop.time() - started_at

    def _read(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return
        if chunk:
            self._lines.feed(chunk)
        else:
            asyncio.get_running_loop().remove_reader(descriptor)


async def _spawn(command: ProcessCommand, output: int) -> asyncio.subprocess.Process:
    """The kernel ties the child to the *thread* that started it, hence the assertion."""
    assert threading.current_thread() is threading.main_thread()
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", parent_death_signal.__file__, str(os.getpid()), str(command.niceness)),
        *command.argv,
        env=command.environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def _kill_session(pid: int) -> None:
    """The part and its own child processes."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _reading(code: int) -> str:
    names = {number.value: number.name for number in signal.Signals}
    return f"signal {names.get(-code, -code)}" if code < 0 else f"code {code}"
