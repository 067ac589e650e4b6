"""Slow uploads give up their slots in a crowd, and only then."""

from __future__ import annotations

import asyncio

import pytest
from virtual_time import in_virtual_time, now

from extproc.uploads import BYTES_PER_SECOND_MIN, LOOK_SECONDS, MORE_SECONDS_MAX, PATIENCE_SECONDS, Uploads

LONG = PATIENCE_SECONDS + 3 * LOOK_SECONDS


async def upload(uploads: Uploads, *, seconds: float = 60.0, work: float = 0.0, length: int = 0) -> str:
    """A chat whose body of `length` arrives after `seconds`, and is worked on for `work` seconds."""
    async with uploads.stream() as one:
        one.wait(length)
        await asyncio.sleep(seconds)
        one.arrived()
        await asyncio.sleep(work)
        return "arrived"
    return "given up"


@in_virtual_time
async def test_slow_uploads_give_up_their_slots_where_most_are_taken_even_if_nobody_else_comes() -> None:
    uploads = Uploads(4)
    assert await asyncio.gather(*(upload(uploads) for _ in range(3))) == ["given up"] * 3
    assert PATIENCE_SECONDS <= now() <= PATIENCE_SECONDS + LOOK_SECONDS


@in_virtual_time
async def test_without_a_crowd_an_upload_may_take_its_time_and_a_chat_that_is_worked_on_keeps_its_place() -> None:
    few, crowded = Uploads(8), Uploads(2)
    assert await asyncio.gather(*(upload(few, seconds=LONG) for _ in range(5))) == ["arrived"] * 5
    working = (upload(crowded, seconds=0.0, work=LONG) for _ in range(2))
    assert await asyncio.gather(*working) == ["arrived"] * 2


@in_virtual_time
async def test_a_long_body_has_the_time_of_its_bytes_and_no_more() -> None:
    uploads = Uploads(4)
    long = upload(uploads, seconds=LONG, length=4 * BYTES_PER_SECOND_MIN)
    short = (upload(uploads, length=1_000) for _ in range(3))
    assert await asyncio.gather(long, *short) == ["arrived", *["given up"] * 3]


@in_virtual_time
async def test_what_a_client_announces_and_never_sends_keeps_no_place_for_long() -> None:
    uploads = Uploads(4)
    assert await asyncio.gather(*(upload(uploads, length=1 << 25) for _ in range(3))) == ["given up"] * 3
    assert now() <= PATIENCE_SECONDS + MORE_SECONDS_MAX + LOOK_SECONDS


@in_virtual_time
async def test_errors_and_time_outs_of_the_work_itself_are_its_own() -> None:
    uploads = Uploads(1)
    with pytest.raises(TimeoutError, match="of the work"):
        async with uploads.stream():
            raise TimeoutError("of the work")
    with pytest.raises(ValueError, match="a mistake"):
        async with uploads.stream():
            raise ValueError("a mistake")
    assert await upload(uploads, seconds=0.0) == "arrived"
