"""What every process runs on: log lines, groups of tasks, and long texts beside the event loop."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import structlog

from memory.runtime.offload import HEAVY_CHARACTERS, LONG_CHARACTERS, run_each_offloaded, run_offloaded
from memory.runtime.task_groups import started_again, unwrapped

SCRIPT = """
import logging, sys, structlog
from memory.runtime.logs import log_to_stderr
log = structlog.get_logger("early")
log_to_stderr(sys.argv[1])
def fail(said):
    raise ValueError("broken")
log.info("started", part="worker")
logging.getLogger("a.library").info("chatter")
logging.getLogger("a.library").warning("slow disk")
try:
    fail("my locker code is zebra")
except ValueError:
    log.exception("a job broke")
    logging.getLogger("a.library").exception("it broke there")
"""


def lines_of(log_format: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, log_format], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_traceback_shows_what_a_variable_held(log_format: str) -> None:
    lines = lines_of(log_format)
    text = "\n".join(lines)
    assert "ValueError: broken" in text
    assert "zebra" not in text
    assert "chatter" not in text
    if log_format == "json":
        events = [json.loads(line) for line in lines]
        assert [event["event"] for event in events] == ["started", "slow disk", "a job broke", "it broke there"]
        assert (events[0]["level"], events[0]["part"]) == ("info", "worker")
        assert all("ValueError: broken" in event["exception"] for event in events[2:])


@pytest.mark.parametrize(("length", "is_here"), [(HEAVY_CHARACTERS, True), (HEAVY_CHARACTERS + 1, False)])
async def test_only_a_long_text_goes_to_a_thread(length: int, *, is_here: bool) -> None:
    places: list[int] = []

    def upper(text: str) -> str:
        places.append(threading.get_ident())
        return text.upper()

    assert await run_offloaded(upper, "a" * length) == "A" * length
    assert (places == [threading.get_ident()]) is is_here


async def test_a_usual_text_does_not_wait_for_a_long_one() -> None:
    may_end = threading.Event()

    def upper(text: str) -> str:
        assert len(text) <= LONG_CHARACTERS or may_end.wait(60)
        return text.upper()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        long = tasks.create_task(run_offloaded(upper, "l" * (LONG_CHARACTERS + 1)))
        await asyncio.sleep(0)
        assert (await run_offloaded(upper, "u" * LONG_CHARACTERS)).startswith("U")
        assert not long.done()
        may_end.set()


async def test_many_texts_are_worked_on_one_at_a_time_and_let_others_in_between() -> None:
    short = "b" * (HEAVY_CHARACTERS // 2)
    done: list[tuple[int, str]] = []

    def upper(text: str) -> str:
        done.append((threading.get_ident(), text[:1]))
        return text.upper()

    async with asyncio.TaskGroup() as tasks:
        many = tasks.create_task(run_each_offloaded(upper, [short, short, short, "c" * HEAVY_CHARACTERS, short]))
        other = tasks.create_task(run_offloaded(upper, "o" * (HEAVY_CHARACTERS + 1)))
    assert many.result() == [text.upper() for text in (short, short, short, "c" * HEAVY_CHARACTERS, short)]
    assert other.result() == "O" * (HEAVY_CHARACTERS + 1)
    assert threading.get_ident() not in {thread for thread, _ in done}
    assert len({thread for thread, _ in done}) == 1
    assert [first for _, first in done].index("o") == 2  # behind the first two short ones


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
