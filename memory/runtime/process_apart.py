"""Runs work in one process of its own, which leaves the interpreter of this one to the chats.

The process is started for the first work, at a lower priority, and for the next work after it was lost. It ends with
its parent, since the pipe between them ends then. Work must not depend on anything but its arguments, and what it says
goes nowhere: an error message could hold a text.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import ForkingPickler
from pickle import PicklingError
from subprocess import DEVNULL, Popen
from threading import Timer
from typing import TypeVar

NICENESS = 10
SECONDS_MAX = 30.0  # of one piece of work, the start of the process included; after them the process is killed

T = TypeVar("T")


class ProcessLost(Exception):
    """The work was not done, and may be done here."""


class ProcessApart:
    """May be used by one thread at a time. `seconds_max`: of one piece of work."""

    def __init__(self, seconds_max: float = SECONDS_MAX) -> None:
        self._seconds_max = seconds_max
        self._started: tuple[Popen[bytes], Connection] | None = None

    @property
    def pid(self) -> int | None:
        return self._started[0].pid if self._started else None

    def run(self, work: Callable[[], T]) -> T:
        """What `work()` returns. Raises `ProcessLost` if it fails, or cannot be sent, or the process ends before it."""
        try:
            request = ForkingPickler.dumps(work)
            process, pipe = self._started = self._started or _start()
        except (AttributeError, OSError, PicklingError, TypeError) as error:
            raise ProcessLost(type(error).__name__) from None
        limit = Timer(self._seconds_max, process.kill)
        limit.start()
        try:
            pipe.send_bytes(request)
            result: T = pipe.recv()
        except (EOFError, OSError) as error:
            self.close()
            raise ProcessLost(type(error).__name__) from None
        finally:
            limit.cancel()
        return result

    def close(self) -> None:
        if self._started is not None:
            (process, pipe), self._started = self._started, None
            pipe.close()
            process.kill()
            process.wait()


def _start() -> tuple[Popen[bytes], Connection]:
    ours, theirs = Pipe()
    with theirs:
        command, passed = [sys.executable, "-P", "-m", __name__, str(theirs.fileno())], [theirs.fileno()]
        # In a group of its own: a Ctrl-C in the terminal is for the parent.
        process = Popen(command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, pass_fds=passed, process_group=0)
    return process, ours


def main() -> None:
    """In the process: work for work, until the pipe ends."""
    os.nice(NICENESS)
    with Connection(int(sys.argv[1])) as pipe, suppress(EOFError, OSError):
        while True:
            pipe.send(pipe.recv()())


if __name__ == "__main__":
    main()
