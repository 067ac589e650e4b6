"""Executes another program that is killed when its parent dies.

Runs as `python -I -S parent_death_signal.py PID NICENESS PROGRAM …`.

A program of its own, since the supervisor has threads: code between fork and exec in a process with threads may find a
lock held forever, or crash (gRPC's fork handlers did). Uses the standard library only; adds 20 ms to a start.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

AUTOGROUP = "/proc/self/autogroup"  # sched(7)
AUTOGROUP_PAUSES = (0.0, 0.11, 0.11, 0.11)  # the kernel accepts ten changes a second, of all processes together
PR_SET_PDEATHSIG = 1  # the kernel's constant: the signal to receive when the thread that started us ends
ORPHAN_CODE = 70


def main(words: list[str]) -> None:
    """Never returns: `words` are the supervisor's pid, a niceness, a program and its arguments."""
    supervisor, niceness, program = int(words[0]), int(words[1]), words[2]
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:  # other systems than Linux: a killed supervisor leaves its parts running
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != supervisor:
        sys.exit(ORPHAN_CODE)  # it ended before prctl took effect
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored when a shell started us in the background
    if niceness:
        lower_priority(niceness)
    os.execv(program, words[2:])  # noqa: S606 - no shell is wanted


def lower_priority(niceness: int) -> None:
    """Of this process, and of its session: where the kernel groups sessions, it compares the groups' values only."""
    os.nice(niceness)
    for seconds in AUTOGROUP_PAUSES:
        time.sleep(seconds)
        try:
            with open(AUTOGROUP, "w") as file:  # noqa: PTH123 - pathlib would add to the time of each start
                file.write(str(niceness))
        except BlockingIOError:
            continue
        except OSError:  # a kernel without groups, or a container that hides them
            return
        return


if __name__ == "__main__":
    main(sys.argv[1:])
