"""Large bodies take turns and leave most of the time to others; who waits too long, or in a crowd, goes on without.

Slow uploads give up their slots in a crowd, and only then.
"""

from __future__ import annotations

import asyncio

import pytest
from virtual_time import in_virtual_time, now

from extproc import large_bodies as bounds
from extproc.large_bodies import LargeBodies, Uploads

SHORT = bounds.WAIT_SECONDS_MAX / 100


async def work(bodies: LargeBodies, exchange: str, seconds: float) -> tuple[float, float]:
    """When it had its turn, from and to."""
    assert await bodies.has_turn(exchange)
    with bodies.work(exchange):
        began = now()
        await asyncio.sleep(seconds)
    return began, now()


@in_virtual_time
async def test_one_works_at_a_time_and_then_there_is_a_rest_of_its_length() -> None:
    bodies = LargeBodies()
    first, second, third = await asyncio.gather(*(work(bodies, one, SHORT) for one in "abc"))
    assert first == (0.0, SHORT)
    assert second == pytest.approx(((1 + bounds.RESTS) * SHORT, (2 + bounds.RESTS) * SHORT))
    assert third == pytest.approx((2 * (1 + bounds.RESTS) * SHORT, (3 + 2 * bounds.RESTS) * SHORT))


@in_virtual_time
async def test_both_streams_of_an_exchange_work_together_also_in_its_rest_which_is_not_shortened() -> None:
    bodies = LargeBodies()
    assert await asyncio.gather(work(bodies, "a", SHORT), work(bodies, "a", SHORT)) == [(0.0, SHORT)] * 2
    assert await work(bodies, "a", SHORT) == pytest.approx((SHORT, 2 * SHORT))
    after, _ = await work(bodies, "b", SHORT)
    assert after == pytest.approx(2 * (1 + bounds.RESTS) * SHORT)


@in_virtual_time
async def test_a_second_work_that_begins_in_the_turn_of_another_takes_it_from_nobody() -> None:
    bodies = LargeBodies()
    with bodies.work("a"), bodies.work("b"):
        assert await bodies.has_turn("a")
        assert not await bodies.has_turn("b")
    third, _ = await work(bodies, "c", SHORT)
    assert third == pytest.approx(
        bounds.WAIT_SECONDS_MAX + bounds.REST_SECONDS_MAX
    )  # "b" waited, and no rest is longer


@in_virtual_time
async def test_exchanges_without_an_id_are_different_ones() -> None:
    bodies = LargeBodies()
    first, second = await asyncio.gather(*(work(bodies, "", SHORT) for _ in range(2)))
    assert second[0] >= first[1]


@in_virtual_time
async def test_who_finds_no_turn_in_time_goes_on_and_who_finds_a_crowd_does_so_at_once() -> None:
    bodies = LargeBodies()
    with bodies.work("a"):
        async with asyncio.TaskGroup() as tasks:
            waiting = [tasks.create_task(bodies.has_turn(f"b{number}")) for number in range(bounds.WAITING_MAX)]
            await asyncio.sleep(0)
            assert not bodies.has_room("c")
            assert bodies.has_room("a")
            assert not await bodies.has_turn("c")
            assert now() == 0.0
        assert not any(one.result() for one in waiting)
        assert now() == bounds.WAIT_SECONDS_MAX
    assert bodies.has_room("c")


@in_virtual_time
async def test_one_that_gives_up_while_it_waits_leaves_its_place() -> None:
    bodies = LargeBodies()
    with bodies.work("a"):
        async with asyncio.TaskGroup() as tasks:
            waiting = [tasks.create_task(bodies.has_turn("b")) for _ in range(bounds.WAITING_MAX)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.wait(waiting[:1])
            assert bodies.has_room("c")


# Slow uploads


LONG = bounds.UPLOAD_PATIENCE_SECONDS + 3 * bounds.LOOK_SECONDS


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
    assert bounds.UPLOAD_PATIENCE_SECONDS <= now() <= bounds.UPLOAD_PATIENCE_SECONDS + bounds.LOOK_SECONDS


@in_virtual_time
async def test_without_a_crowd_an_upload_may_take_its_time_and_a_chat_that_is_worked_on_keeps_its_place() -> None:
    few, crowded = Uploads(8), Uploads(2)
    assert await asyncio.gather(*(upload(few, seconds=LONG) for _ in range(5))) == ["arrived"] * 5
    working = (upload(crowded, seconds=0.0, work=LONG) for _ in range(2))
    assert await asyncio.gather(*working) == ["arrived"] * 2


@in_virtual_time
async def test_a_long_body_has_the_time_of_its_bytes_and_no_more() -> None:
    uploads = Uploads(4)
    long = upload(uploads, seconds=LONG, length=4 * bounds.BYTES_PER_SECOND_MIN)
    short = (upload(uploads, length=1_000) for _ in range(3))
    assert await asyncio.gather(long, *short) == ["arrived", *["given up"] * 3]


@in_virtual_time
async def test_what_a_client_announces_and_never_sends_keeps_no_place_for_long() -> None:
    uploads = Uploads(4)
    assert await asyncio.gather(*(upload(uploads, length=1 << 25) for _ in range(3))) == ["given up"] * 3
    assert now() <= bounds.UPLOAD_PATIENCE_SECONDS + bounds.MORE_SECONDS_MAX + bounds.LOOK_SECONDS


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
