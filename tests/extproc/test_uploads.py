"""Slow uploads give up their places in a crowd, and only then."""

from __future__ import annotations

import asyncio

import pytest

from extproc.uploads import BYTES_PER_SECOND_MIN, LOOK_SECONDS, PATIENCE_SECONDS, Uploads

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


async def test_slow_uploads_give_up_their_places_where_most_are_taken() -> None:
    uploads = Uploads(4)
    async with asyncio.TaskGroup() as tasks:
        slow = [tasks.create_task(upload(uploads)) for _ in range(3)]
        done = await asyncio.gather(*slow)
    assert done == ["given up"] * 3


async def test_without_a_crowd_an_upload_may_take_its_time() -> None:
    uploads = Uploads(8)
    async with asyncio.TaskGroup() as tasks:
        slow = [tasks.create_task(upload(uploads, seconds=LONG)) for _ in range(5)]
    assert {one.result() for one in slow} == {"arrived"}


async def test_a_chat_that_is_worked_on_keeps_its_place() -> None:
    uploads = Uploads(2)
    async with asyncio.TaskGroup() as tasks:
        working = [tasks.create_task(upload(uploads, seconds=0.0, work=LONG)) for _ in range(2)]
    assert {one.result() for one in working} == {"arrived"}


async def test_a_long_body_has_the_time_of_its_bytes_and_no_more() -> None:
    uploads = Uploads(4)
    async with asyncio.TaskGroup() as tasks:
        long = tasks.create_task(upload(uploads, seconds=LONG, length=4 * BYTES_PER_SECOND_MIN))
        short = [tasks.create_task(upload(uploads, length=1_000)) for _ in range(3)]
    assert long.result() == "arrived"
    assert {one.result() for one in short} == {"given up"}


async def test_what_a_client_announces_and_never_sends_keeps_no_place_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extproc.uploads.MORE_SECONDS_MAX", LOOK_SECONDS)
    uploads = Uploads(4)
    async with asyncio.TaskGroup() as tasks:
        slow = [tasks.create_task(upload(uploads, length=1 << 25)) for _ in range(3)]
    assert {one.result() for one in slow} == {"given up"}


async def test_a_crowd_of_slow_ones_thins_out_even_if_nobody_else_comes() -> None:
    uploads = Uploads(4)
    began = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as tasks:
        slow = [tasks.create_task(upload(uploads)) for _ in range(4)]
    assert {one.result() for one in slow} == {"given up"}
    assert asyncio.get_running_loop().time() - began >= PATIENCE_SECONDS


async def test_errors_and_time_outs_of_the_work_itself_are_its_own() -> None:
    uploads = Uploads(1)
    with pytest.raises(TimeoutError, match="of the work"):
        async with uploads.stream():
            raise TimeoutError("of the work")
    with pytest.raises(ValueError, match="a mistake"):
        async with uploads.stream():
            raise ValueError("a mistake")
    assert await upload(uploads, seconds=0.0) == "arrived"
