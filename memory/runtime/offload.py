"""Runs work on long texts in a thread, off the event loop.

Must not be used for work that holds a lock or touches shared state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

HEAVY_CHARACTERS = 1_024  # finding secrets in so many takes up to 10 ms


async def run_offloaded(rewrite: Callable[[str], str], text: str) -> str:
    """`rewrite(text)`; for a long text computed in a thread."""
    return await asyncio.to_thread(rewrite, text) if len(text) > HEAVY_CHARACTERS else rewrite(text)


__all__ = ["HEAVY_CHARACTERS", "run_offloaded"]
