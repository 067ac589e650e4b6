"""Becomes another program, tied to the life of whoever started it.

It runs as `python -I -S parent_death_signal.py PID NICENESS PROGRAM …`.

A step of its own, since the supervisor has threads: what runs between fork and exec in a process with threads may find
a lock held for ever, or crash (gRPC's handlers did). Needs the standard library only; adds 20 ms to a start.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # the kernel's name for it: the signal that we get when the thread that started us is gone
ORPHAN_CODE = 70


def main(words: list[str]) -> None:
    """Never returns: `words` are the supervisor's pid, a niceness, a program and its arguments."""
    supervisor, niceness, program = int(words[0]), int(words[1]), words[2]
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:  # elsewhere than on Linux, a supervisor that is killed leaves its parts behind
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != supervisor:
        sys.exit(ORPHAN_CODE)  # it was gone before the tie held
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored when a shell started us in the background
    if niceness:
        os.nice(niceness)
    os.execv(program, words[2:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
