"""Caches functions of a text, since the same memories are compared again and again.

Only short texts are cached: users' texts must not fill the memory of a process, nor stay in it long after erasure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

CACHED_TEXTS_MAX = 4_096  # entries, of a sentence or two each
TEXT_CHARACTERS_MAX = 500  # of a cached text: all together take some MB

T = TypeVar("T")


def cached_by_text(read: Callable[[str], T]) -> Callable[[str], T]:
    """The same function with an LRU cache for short texts."""
    cached = lru_cache(maxsize=CACHED_TEXTS_MAX)(read)

    @wraps(read)
    def recalled(text: str) -> T:
        return cached(text) if len(text) <= TEXT_CHARACTERS_MAX else read(text)

    return recalled
