"""Pages are read one after the other, each when it is asked for."""

from __future__ import annotations

import pytest

from memory.ports.paging import Page, all_pages


class Book:
    """Its pages by cursor."""

    def __init__(self, *pages: str) -> None:
        cursors = ["", *(f"c{number}" for number in range(1, len(pages))), ""]
        self._pages = {cursors[n]: Page(tuple(text), cursors[n + 1]) for n, text in enumerate(pages)}
        self.asked: list[str] = []

    async def page(self, cursor: str) -> Page[str]:
        self.asked.append(cursor)
        return self._pages[cursor]


@pytest.mark.parametrize("pages", [("a",), ("",), ("a", "b", "c"), ("", "", "c"), ("a", "")])
async def test_all_pages_come_in_order_with_empty_ones_among_them(pages: tuple[str, ...]) -> None:
    book = Book(*pages)
    assert ["".join(page.items) async for page in all_pages(book.page)] == list(pages)
    assert len(book.asked) == len(pages)


async def test_whoever_has_enough_reads_no_further_page() -> None:
    book = Book("a", "b", "c")
    async for page in all_pages(book.page):
        if page.items == ("b",):
            break
    assert book.asked == ["", "c1"]
