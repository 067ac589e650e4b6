"""What ports give in pages, and how all of them are read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """`next_cursor`: "" on the last page. A page may be shorter than its limit, or empty, and not be the last."""

    items: tuple[T, ...]
    next_cursor: str = ""


async def all_pages(read: Callable[[str], Awaitable[Page[T]]]) -> AsyncIterator[Page[T]]:
    """All pages in order, each read when it is asked for. `read` gets a cursor: "" for the first page."""
    page = await read("")
    yield page
    while page.next_cursor:
        page = await read(page.next_cursor)
        yield page
