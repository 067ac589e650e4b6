"""Memory of the process, as Python's garbage collector and the C library see it.

The collector looks at all that lives, now and then: with what a filter imports and holds, that stops every chat for
50 ms and more. And memory that no process had before is slow at its first touch: on a virtual machine whose host hands
out pages one by one we measured 5 ms a MiB, so that 5,000 vectors cost a chat 40 ms. It must never be told of what is
soon garbage: what is settled is not looked at again, and goes only when nothing refers to it any more.
"""

from __future__ import annotations

import ctypes
import gc

import numpy as np

SPARE_BYTES = 32 << 20  # at hand in a process that chats wait for: three users with 5,000 memories each
_BLOCK_BYTES = 8 << 20
# Parameters of glibc's mallopt, with our values: freed memory stays ours, and large blocks are taken from it.
_PARAMETERS = (
    (-1, 2 * SPARE_BYTES),  # M_TRIM_THRESHOLD: what is free beyond this goes back to the system
    (-3, SPARE_BYTES),  # M_MMAP_THRESHOLD, the largest that it takes
    (-8, 1),  # M_ARENA_MAX: threads share one heap
)


def freeze_live_objects() -> None:
    """What is there now stays. Collects first, which takes as long as there is to look at since the last time."""
    gc.collect()
    gc.freeze()


def keep_freed_memory() -> None:
    """From now on, freed memory is used again rather than given back. Does nothing where the C library is not glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in _PARAMETERS:
            mallopt(parameter, value)


def preallocate() -> None:
    """Touch so much free memory that the next who wants some finds it quick. For a thread: takes up to 0.2 s."""
    for block in [np.empty(_BLOCK_BYTES, dtype=np.uint8) for _ in range(SPARE_BYTES // _BLOCK_BYTES)]:
        block.fill(0)


__all__ = ["freeze_live_objects", "keep_freed_memory", "preallocate"]
