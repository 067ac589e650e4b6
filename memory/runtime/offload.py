"""Work on long texts, off the event loop: what takes longer than a request may wait goes to a thread.

It must never be used for work that holds a lock or touches shared state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

HEAVY_CHARACTERS = 1_024  # looking for secrets in so many takes up to 10 ms


async def run_offloaded(rewrite: Callable[[str], str], text: str) -> str:
    """What `rewrite` makes of the text; of a long one in a thread, beside everybody's requests."""
    return await asyncio.to_thread(rewrite, text) if len(text) > HEAVY_CHARACTERS else rewrite(text)


__all__ = ["HEAVY_CHARACTERS", "run_offloaded"]
