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
        os.nice(niceness)
    os.execv(program, words[2:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
