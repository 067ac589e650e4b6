"""Tunes the garbage collector and the C library's allocator for short pauses.

A full collection visits all live objects: with what a filter imports and holds, it stops every chat for 50 ms and more,
so long-lived objects are frozen. They are then only freed by reference counting, so short-lived objects must not be.
The first touch of new memory is slow as well: on a virtual machine whose host maps pages one by one we measured 5 ms
per MiB, so that 5,000 vectors cost a chat 40 ms. Freed memory is therefore kept, and some is allocated in advance.
"""

from __future__ import annotations

import ctypes
import gc

import numpy as np

SPARE_BYTES = 32 << 20  # kept free in a process that serves chats: three users with 5,000 memories each
_BLOCK_BYTES = 8 << 20
# Parameters of glibc's mallopt with our values: freed memory is kept, large blocks come from it.
_PARAMETERS = (
    (-1, 2 * SPARE_BYTES),  # M_TRIM_THRESHOLD: free memory beyond this is returned to the system
    (-3, SPARE_BYTES),  # M_MMAP_THRESHOLD, at its maximum
    (-8, 1),  # M_ARENA_MAX: threads share one heap
)


def freeze_live_objects() -> None:
    """Exclude all live objects from later collections. Collects first, which takes as long as objects are new."""
    gc.collect()
    gc.freeze()


def keep_freed_memory() -> None:
    """Reuse freed memory instead of returning it to the system. Does nothing unless the C library is glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in _PARAMETERS:
            mallopt(parameter, value)


def preallocate() -> None:
    """Touch free memory in advance, so that its next use is fast. Run in a thread: takes up to 0.2 s."""
    for block in [np.empty(_BLOCK_BYTES, dtype=np.uint8) for _ in range(SPARE_BYTES // _BLOCK_BYTES)]:
        block.fill(0)
