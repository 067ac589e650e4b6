"""Work on long texts, off the event loop: what takes longer than a request may wait goes to a thread.

It must never be used for work that holds a lock or touches shared state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

HEAVY_CHARACTERS = 1_024  # looking for secrets in so many takes up to 10 ms


async def rewritten(rewrite: Callable[[str], str], text: str) -> str:
    """What `rewrite` makes of the text; of a long one in a thread, beside everybody's requests."""
    return await asyncio.to_thread(rewrite, text) if len(text) > HEAVY_CHARACTERS else rewrite(text)


async def computed(work: Callable[[], T], *, characters: int) -> T:
    """What `work` gives; in a thread where it reads so many characters that others would wait for it."""
    return await asyncio.to_thread(work) if characters > HEAVY_CHARACTERS else work()


__all__ = ["HEAVY_CHARACTERS", "computed", "rewritten"]
