"""What every process runs on: log lines, groups of tasks, long texts beside the event loop, a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest
import structlog

from memory.runtime import offload
from memory.runtime.offload import HEAVY_CHARACTERS, LONG_CHARACTERS, run_each_offloaded, run_offloaded
from memory.runtime.process_apart import ProcessApart, ProcessLost
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


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_traceback_shows_what_a_variable_held(log_format: str) -> None:
    command = [sys.executable, "-c", SCRIPT, log_format]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == ""
    assert "ValueError: broken" in done.stderr
    assert "zebra" not in done.stderr
    assert "chatter" not in done.stderr
    if log_format == "json":
        events = [json.loads(line) for line in done.stderr.splitlines()]
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


async def grouped(body: Callable[[asyncio.Task[None]], Awaitable[None]]) -> None:
    """A task that loses, and beside it the body of its group."""

    async def lose() -> None:
        raise Lost

    with unwrapped():
        async with asyncio.TaskGroup() as group:
            await body(group.create_task(lose()))


async def test_a_single_error_comes_out_as_it_is_and_a_second_is_not_hidden_behind_it() -> None:
    async def wait(task: asyncio.Task[None]) -> None:
        await asyncio.wait((task,))

    async def ask(task: asyncio.Task[None]) -> None:
        """Right when it has failed, before the group has heard of it."""
        await asyncio.sleep(0)
        await task

    async def be_late(task: asyncio.Task[None]) -> None:
        with suppress(asyncio.CancelledError):
            await wait(task)
        raise Late

    for body in (wait, ask):
        with pytest.raises(Lost):
            await grouped(body)
    with pytest.raises(ExceptionGroup) as group_error:
        await grouped(be_late)
    assert {type(error) for error in group_error.value.exceptions} == {Late, Lost}


async def test_background_work_that_fails_is_started_again_and_its_end_ends_it() -> None:
    outcomes: list[Exception | None] = [RuntimeError("poison"), OSError(28, "disk full"), None]
    begun = 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if (error := outcomes[begun - 1]) is not None:
            raise ExceptionGroup("of its tasks", [error])

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


PARENT = """
import os, signal
from memory.runtime.process_apart import ProcessApart
process = ProcessApart()
print(process.run(os.getpid), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
LONG = "a" * (LONG_CHARACTERS + 1)


@pytest.fixture
def process() -> Iterator[ProcessApart]:
    one = ProcessApart()
    yield one
    one.close()


def test_work_is_done_elsewhere_at_a_lower_priority(process: ProcessApart) -> None:
    assert process.run(partial(str.upper, "one \udcff")) == "ONE \udcff"
    assert process.run(os.getpid) == process.pid != os.getpid()
    assert process.run(partial(os.nice, 0)) > os.nice(0)


@pytest.mark.parametrize(
    "work",
    [partial(os._exit, 0), partial(int, "my pin is 4471"), lambda: "a lambda", partial(memoryview, b"")],
    ids=["ends", "fails", "cannot be sent", "its result cannot be sent"],
)
def test_what_was_not_done_is_known_and_the_next_is_done(process: ProcessApart, work: Callable[[], object]) -> None:
    process.run(os.getpid)
    with pytest.raises(ProcessLost) as lost:
        process.run(work)
    assert "4471" not in str(lost.value)
    assert process.run(partial(str.upper, "next")) == "NEXT"


def test_a_process_that_was_killed_is_started_again(process: ProcessApart) -> None:
    first = process.run(os.getpid)
    os.kill(first, signal.SIGKILL)
    with pytest.raises(ProcessLost):
        process.run(os.getpid)
    assert process.run(os.getpid) not in (first, os.getpid())


def test_work_that_takes_too_long_is_ended() -> None:
    process = ProcessApart(seconds_max=0.1)
    with pytest.raises(ProcessLost):
        process.run(partial(time.sleep, 3_600))
    assert process.pid is None


def test_the_process_ends_with_a_parent_that_was_killed() -> None:
    done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    with suppress(ProcessLookupError):
        ending = os.pidfd_open(int(done.stdout))
        assert select.select([ending], [], [], 60)[0] == [ending]
        os.close(ending)


async def test_long_texts_and_many_texts_are_looked_through_by_the_process() -> None:
    with structlog.testing.capture_logs() as logs:
        assert await run_offloaded(str.upper, LONG) == LONG.upper()
        assert await run_each_offloaded(str.upper, ["one"] * LONG_CHARACTERS) == ["ONE"] * LONG_CHARACTERS
    assert offload._process().pid is not None
    assert logs == []


async def test_a_text_whose_process_was_killed_is_looked_through_here() -> None:
    await run_offloaded(str.upper, LONG)
    first = offload._process().pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    with structlog.testing.capture_logs() as logs:
        assert await run_offloaded(str.upper, LONG) == LONG.upper()
    assert [entry["event"] for entry in logs] == ["long_text_scanned_here"]
    assert await run_offloaded(str.upper, LONG) == LONG.upper()
    assert offload._process().pid not in (None, first)
