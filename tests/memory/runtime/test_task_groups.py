"""What comes out of a group of tasks: one error as it is, and never one less than there were."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import structlog

from memory.runtime.task_groups import started_again, unwrapped


class Late(Exception):
    """Of the body."""


class Lost(Exception):
    """Of a task."""


async def lose() -> None:
    raise Lost


async def grouped(body: Callable[[asyncio.Task[None]], Awaitable[None]]) -> None:
    """A task that loses, and beside it the body of its group."""
    with unwrapped():
        async with asyncio.TaskGroup() as group:
            await body(group.create_task(lose()))


async def wait_for(task: asyncio.Task[None]) -> None:
    await asyncio.wait((task,))


async def ask(task: asyncio.Task[None]) -> None:
    """Right when it has failed, before the group has heard of it."""
    await asyncio.sleep(0)
    await task


async def be_late(task: asyncio.Task[None]) -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.wait((task,))
    raise Late


@pytest.mark.parametrize("body", [wait_for, ask])
async def test_a_single_error_comes_out_as_it_is_also_where_it_was_awaited(
    body: Callable[[asyncio.Task[None]], Awaitable[None]],
) -> None:
    with pytest.raises(Lost):
        await grouped(body)


async def test_a_second_error_is_not_hidden_behind_the_first() -> None:
    with pytest.raises(ExceptionGroup) as group_error:
        await grouped(be_late)
    assert {type(error) for error in group_error.value.exceptions} == {Late, Lost}


async def failing(error: Exception) -> None:
    raise error


async def test_background_work_that_fails_is_started_again_and_its_end_ends_it() -> None:
    outcomes: list[Exception | None] = [RuntimeError("poison"), OSError(28, "disk full"), None]
    begun = 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if (error := outcomes[begun - 1]) is not None:
            async with asyncio.TaskGroup() as group:
                group.create_task(failing(error))

    with structlog.testing.capture_logs() as logs:
        await started_again(work, name="profiles", pause=0.0)
    assert begun == 3
    assert [(entry["work"], entry["error"]) for entry in logs] == [
        ("profiles", "RuntimeError"),
        ("profiles", "OSError"),
    ]


async def test_background_work_can_be_cancelled() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(started_again(forever, name="waiting", pause=0.0))
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
