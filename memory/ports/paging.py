"""Reads what ports give in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar


class CursorPage(Protocol):
    """`next_cursor`: "" on the last page. A page may be empty and not be the last."""

    @property
    def next_cursor(self) -> str: ...


AnyPage = TypeVar("AnyPage", bound=CursorPage)


async def all_pages(read: Callable[[str], Awaitable[AnyPage]]) -> AsyncIterator[AnyPage]:
    """All pages in order, each read when it is asked for. `read` gets a cursor: "" for the first page."""
    page = await read("")
    yield page
    while page.next_cursor:
        page = await read(page.next_cursor)
        yield page
