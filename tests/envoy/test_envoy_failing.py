"""Memory that fails is never the client's trouble: every chat is answered, with a real Envoy and broken filters."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
import structlog
from filter_stack import FilterStack, running_stack
from upstream import RecordingUpstream

pytestmark = pytest.mark.asyncio(loop_scope="session")  # where the shared filter lives

SAID = "What is my cat called?"
BODY = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": SAID}], "memory_context": {"user_id": "u"}}
).encode()


async def statuses(stack: FilterStack, count: int) -> list[str]:
    """The memory status of so many chats, one after the other; all of them answered, and quickly."""
    seen = []
    for _ in range(count):
        started = time.monotonic()
        answer = await stack.chat(BODY)
        assert answer.status_code == 200
        assert time.monotonic() - started < 2.0
        seen.append(answer.headers.get("x-memory-status", "none"))
    return seen


async def test_without_a_filter_chats_are_answered_and_memory_returns_with_it(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url) as stack:
        assert await statuses(stack, 1) == ["used"]
        await stack.filters[0].leave()
        assert set(await statuses(stack, 5)) == {"none"}
        assert upstream.last_chat().body == BODY
        stack.start_filter(stack.plan.filter_sockets[0])
        async with asyncio.timeout(5):
            while await statuses(stack, 1) != ["used"]:
                await asyncio.sleep(0.05)


async def test_a_filter_that_leaves_takes_no_chat_with_it(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url, filters=2) as stack, asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(stack.filters[0].leave())
        seen: list[str] = []
        while not leaving.done():
            seen += await statuses(stack, 5)
        seen += await statuses(stack, 10)
        assert set(seen) == {"used"}


async def test_a_filter_that_hangs_costs_a_second_and_no_more(stack: FilterStack, upstream: RecordingUpstream) -> None:
    stack.recall.seconds = 5.0
    assert await statuses(stack, 1) == ["none"]
    assert upstream.last_chat().body == BODY
    stack.recall.seconds = 0.0
    assert await statuses(stack, 1) == ["used"]


async def test_chats_beyond_capacity_wait_for_nothing_and_are_recorded(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url, filter_in_flight_max=2) as stack, asyncio.TaskGroup() as tasks:
        stack.recall.seconds = 0.5
        started = time.monotonic()
        waiting = [tasks.create_task(stack.chat(BODY)) for _ in range(2)]
        while len(stack.recall.asked) < 2:
            await asyncio.sleep(0.01)
        assert await statuses(stack, 3) == ["none"] * 3
        assert time.monotonic() - started < 0.5, "before the two that they did not wait for"
        assert upstream.last_chat().body == BODY
        assert [(await answer).headers["x-memory-status"] for answer in waiting] == ["used"] * 2
        assert await statuses(stack, 1) == ["used"]
        assert len(await stack.turns("u", until=6)) == 6


async def test_a_large_body_is_given_the_time_that_it_takes(stack: FilterStack) -> None:
    stack.recall.seconds = 1.3  # stands for reading many MiB on a busy machine
    large = BODY[:-1] + b', "padding": "' + b"x" * (2 << 20) + b'"}'
    answer = await stack.chat(large)
    assert answer.headers["x-memory-status"] == "used"
    assert await statuses(stack, 1) == ["none"]


async def test_an_error_of_ours_ends_one_stream_and_nothing_else(stack: FilterStack) -> None:
    stack.recall.error = RuntimeError(f"a mistake of ours, with {SAID} in it")
    with structlog.testing.capture_logs() as logs:
        assert set(await statuses(stack, 20)) == {"none"}, "answered, twenty times"
    assert [entry["error"] for entry in logs] == ["RuntimeError"] * 20
    assert SAID not in str(logs)
    stack.recall.error = None
    assert set(await statuses(stack, 20)) == {"used"}, "and it did not get this filter ejected"
