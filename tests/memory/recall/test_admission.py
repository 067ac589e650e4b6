"""As many searches run as will end in time, judged by how long they take; others wait for a place, but not for long."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from memory.recall.admission import ALWAYS, LEFT_MIN, RUN_SHARE, WAITING_MAX, Admission

DEADLINE = 1.0
EACH = RUN_SHARE * DEADLINE / 8  # so that there is room for eight
HALF = EACH * 2  # and here for four


async def learnt(*, each: float, at_once_max: int = 100) -> Admission:
    """One that has seen many searches, alone, that took that long."""
    admission = Admission(at_once_max=at_once_max, deadline_seconds=DEADLINE)
    for _ in range(100):
        await searched(admission, each)
    return admission


async def searched(admission: Admission, seconds: float, *, is_complete: bool = True) -> None:
    async with admission.slot(DEADLINE) as slot:
        assert slot is not None
        slot.release(seconds, is_complete=is_complete)


async def room(admission: Admission) -> int:
    """How many it lets in at a time."""
    in_vain = LEFT_MIN * DEADLINE  # time for a search, but none to wait for a place
    async with AsyncExitStack() as stack:
        while await stack.enter_async_context(admission.slot(in_vain)) is not None:
            pass
        return admission.in_flight


async def test_as_many_are_let_in_as_end_within_their_share_of_the_deadline() -> None:
    assert await room(await learnt(each=EACH * 1.001)) == 7
    assert await room(await learnt(each=EACH * 0.999)) == 8
    assert await room(await learnt(each=HALF * 0.999)) == 4
    assert await room(await learnt(each=EACH / 100, at_once_max=16)) == 16


async def test_what_cannot_end_in_time_any_more_is_not_begun() -> None:
    admission = await learnt(each=EACH)
    for left in (LEFT_MIN * DEADLINE - 0.001, 0.0, -1.0):
        async with admission.slot(left) as slot:
            assert slot is None


async def test_however_slow_it_looks_some_are_let_in_so_that_it_learns_when_it_is_over() -> None:
    admission = await learnt(each=10 * DEADLINE)
    assert await room(admission) == ALWAYS
    for _ in range(100):
        await searched(admission, EACH * 0.999)
    assert await room(admission) > ALWAYS


@pytest.mark.parametrize("seconds", [0.0, 0.001])
async def test_one_that_failed_quickly_tells_nothing(seconds: float) -> None:
    admission = await learnt(each=HALF * 0.999)
    for _ in range(100):
        await searched(admission, seconds, is_complete=False)
    assert await room(admission) == 4


async def test_what_ran_beside_others_counts_for_its_part_only() -> None:
    admission = Admission(at_once_max=100, deadline_seconds=DEADLINE)
    for _ in range(100):
        async with AsyncExitStack() as stack:
            places = [await stack.enter_async_context(admission.slot(DEADLINE)) for _ in range(ALWAYS)]
            last = places[-1]
            assert last is not None
            last.release(ALWAYS * EACH * 0.999, is_complete=True)
    assert await room(admission) == 8


async def test_who_finds_no_place_waits_for_one_and_the_first_to_come_is_the_first_to_get_one() -> None:
    admission, order = await learnt(each=EACH, at_once_max=1), []

    async def search(name: str) -> None:
        async with admission.slot(DEADLINE) as slot:
            order.append((name, slot is not None))
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(search(name))
    assert order == [("a", True), ("b", True), ("c", True)]
    assert admission.in_flight == 0


@pytest.mark.soak("judges time")
async def test_nobody_waits_longer_than_leaves_time_for_the_search() -> None:
    admission, loop = await learnt(each=EACH, at_once_max=1), asyncio.get_running_loop()
    async with admission.slot(DEADLINE):
        began = loop.time()
        async with admission.slot(LEFT_MIN * DEADLINE + 0.05) as slot:
            assert slot is None
        assert 0.04 < loop.time() - began < 0.3
    assert admission.in_flight == 0
    await searched(admission, EACH)  # the place of the one that gave up waiting is not lost


async def test_a_place_that_is_given_to_somebody_who_has_just_left_goes_to_the_next() -> None:
    admission = await learnt(each=EACH, at_once_max=1)

    async def search() -> bool:
        async with admission.slot(DEADLINE) as slot:
            return slot is not None

    async with asyncio.TaskGroup() as group:
        async with admission.slot(DEADLINE):
            leaving, staying = group.create_task(search()), group.create_task(search())
            await asyncio.sleep(0.01)
        leaving.cancel()  # in the same turn of the loop in which it is given the place
    assert staying.result()
    assert admission.in_flight == 0


async def test_a_crowd_without_end_is_not_kept_waiting() -> None:
    admission = await learnt(each=EACH, at_once_max=1)

    async def search() -> bool:
        async with admission.slot(DEADLINE) as slot:
            return slot is not None

    async with asyncio.TaskGroup() as group, admission.slot(DEADLINE):
        waiting = [group.create_task(search()) for _ in range(WAITING_MAX)]
        await asyncio.sleep(0.01)
        assert not await asyncio.wait_for(search(), 0.01)  # refused at once
    assert all(task.result() for task in waiting)


async def test_a_place_is_free_as_soon_as_it_is_left_and_only_once() -> None:
    admission = await learnt(each=EACH, at_once_max=1)
    async with admission.slot(DEADLINE) as first:
        assert first is not None
        first.release(EACH, is_complete=True)
        async with admission.slot(LEFT_MIN * DEADLINE) as second:  # while the first goes on with its search
            assert second is not None
            first.release(EACH, is_complete=True)
            assert admission.in_flight == 1
    assert admission.in_flight == 0
