"""Runs work on long texts in a thread, off the event loop.

Must not be used for work that holds a lock or touches shared state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

HEAVY_CHARACTERS = 1_024  # finding secrets in so many takes up to 10 ms
HEAVY_BODY_BYTES = 256 << 10  # hashing or parsing its messages takes a millisecond, during which no other stream runs

T = TypeVar("T")


async def run_offloaded(rewrite: Callable[[str], str], text: str) -> str:
    """`rewrite(text)`; for a long text computed in a thread."""
    return await asyncio.to_thread(rewrite, text) if len(text) > HEAVY_CHARACTERS else rewrite(text)


async def run_by_size(work: Callable[[], T], *, size: int) -> T:
    """`work()`; for a request body of many bytes (`size`) computed in a thread."""
    return await asyncio.to_thread(work) if size > HEAVY_BODY_BYTES else work()


__all__ = ["HEAVY_BODY_BYTES", "HEAVY_CHARACTERS", "run_by_size", "run_offloaded"]
