"""Long texts are worked on beside the event loop, short ones at once."""

from __future__ import annotations

import asyncio
import threading

import pytest

from memory.runtime.offload import HEAVY_CHARACTERS, run_each_offloaded, run_offloaded

SHORT = "b" * (HEAVY_CHARACTERS // 2)


@pytest.mark.parametrize(("length", "is_here"), [(HEAVY_CHARACTERS, True), (HEAVY_CHARACTERS + 1, False)])
async def test_only_a_long_text_goes_to_a_thread(length: int, *, is_here: bool) -> None:
    places: list[int] = []

    def upper(text: str) -> str:
        places.append(threading.get_ident())
        return text.upper()

    assert await run_offloaded(upper, "a" * length) == "A" * length
    assert (places == [threading.get_ident()]) is is_here


async def test_many_texts_are_worked_on_one_at_a_time_and_let_others_in_between() -> None:
    done: list[tuple[int, str]] = []

    def upper(text: str) -> str:
        done.append((threading.get_ident(), text[:1]))
        return text.upper()

    async with asyncio.TaskGroup() as tasks:
        many = tasks.create_task(run_each_offloaded(upper, [SHORT, SHORT, SHORT, "c" * HEAVY_CHARACTERS, SHORT]))
        other = tasks.create_task(run_offloaded(upper, "o" * (HEAVY_CHARACTERS + 1)))
    assert many.result() == [text.upper() for text in (SHORT, SHORT, SHORT, "c" * HEAVY_CHARACTERS, SHORT)]
    assert other.result() == "O" * (HEAVY_CHARACTERS + 1)
    assert threading.get_ident() not in {thread for thread, _ in done}
    assert len({thread for thread, _ in done}) == 1
    assert [first for _, first in done].index("o") == 2  # behind the first two short ones
