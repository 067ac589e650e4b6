"""What ports give in pages, how all of them are read, and batches of what ports are given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
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


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """In order."""
    return (items[start : start + size] for start in range(0, len(items), size))


def sized_batches(
    items: Iterable[T], size_of: Callable[[T], int], *, items_max: int, size_max: int
) -> Iterator[list[T]]:
    """In order, each within both limits, as far as no single item is larger."""
    batch: list[T] = []
    used = 0
    for item in items:
        size = size_of(item)
        if batch and (len(batch) == items_max or used + size > size_max):
            yield batch
            batch, used = [], 0
        batch.append(item)
        used += size
    if batch:
        yield batch
