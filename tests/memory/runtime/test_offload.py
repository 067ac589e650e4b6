"""Long texts are worked on beside the event loop, short ones at once."""

from __future__ import annotations

import threading

import pytest

from memory.runtime.offload import HEAVY_CHARACTERS, run_offloaded


@pytest.mark.parametrize(("length", "is_here"), [(HEAVY_CHARACTERS, True), (HEAVY_CHARACTERS + 1, False)])
async def test_only_a_long_text_goes_to_a_thread(length: int, *, is_here: bool) -> None:
    places: list[int] = []

    def upper(text: str) -> str:
        places.append(threading.get_ident())
        return text.upper()

    assert await run_offloaded(upper, "a" * length) == "A" * length
    assert (places == [threading.get_ident()]) is is_here
