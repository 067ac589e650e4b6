"""Work in a process of its own: it is done, or it is known not to have been, and nothing outlives who asked for it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest
import structlog

from memory.runtime import offload
from memory.runtime.offload import LONG_CHARACTERS, run_each_offloaded, run_offloaded
from memory.runtime.process_apart import ProcessApart, ProcessLost

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
def test_what_was_not_done_is_known_and_the_next_work_is_done(
    process: ProcessApart, work: Callable[[], object]
) -> None:
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
