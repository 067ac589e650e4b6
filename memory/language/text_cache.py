"""What was made of a text, remembered for a while: what is known about a user is compared again and again.

Only short texts: users' words must not fill the memory of a process, nor long outlive in it what was erased.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

CACHED_TEXTS_MAX = 4_096  # of a sentence or two each
TEXT_CHARACTERS_MAX = 500  # of a text that is remembered: all of them together are some MB

T = TypeVar("T")


def cached_by_text(read: Callable[[str], T]) -> Callable[[str], T]:
    """The same function of a text; its results for the short texts that came last are kept."""
    cached = lru_cache(maxsize=CACHED_TEXTS_MAX)(read)

    @wraps(read)
    def recalled(text: str) -> T:
        return cached(text) if len(text) <= TEXT_CHARACTERS_MAX else read(text)

    return recalled


__all__ = ["TEXT_CHARACTERS_MAX", "cached_by_text"]
