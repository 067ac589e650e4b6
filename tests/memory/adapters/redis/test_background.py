"""Writes for which nobody waits: in order, limited in number, and no failure of theirs is anybody else's."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from memory.adapters.redis import background as background_module
from memory.adapters.redis.background import RedisBackground
from memory.errors import Unavailable


class Written:
    """What was written, in order. A negative number fails."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    async def add(self, number: int) -> None:
        await asyncio.sleep(0)
        if number < 0:
            raise Unavailable("turn_log", "a test")
        self.numbers.append(number)


async def test_all_is_written_in_order_also_what_waits_on_exit_and_failures_stop_nothing() -> None:
    written = Written()
    async with RedisBackground() as background:
        for number in (1, -1, 2):
            background.post(partial(written.add, number))
        await background.written()
        assert written.numbers == [1, 2]
        background.post(partial(written.add, 3))
    assert written.numbers == [1, 2, 3]


async def test_what_is_posted_beyond_the_limit_or_after_the_end_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "WAITING_MAX", 3)
    written = Written()
    async with RedisBackground() as background:
        for number in range(9):
            background.post(partial(written.add, number))
    background.post(partial(written.add, 10))
    assert written.numbers == [0, 1, 2]


async def test_an_end_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "CLOSING_SECONDS", 0.05)
    async with RedisBackground() as background:
        background.post(partial(asyncio.sleep, 60))
        await asyncio.sleep(0)
