"""Memory that fails is never the client's trouble: every chat is answered, with a real Envoy and broken filters."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import structlog
from api_shapes import SHAPES, AskedShape
from filter_stack import FilterStack, running_stack
from upstream import RecordingUpstream

from extproc.addresses import unix_target
from extproc.supervisor.bootstrap import TrafficLimits

pytestmark = pytest.mark.asyncio(loop_scope="session")  # where the shared filter lives

SAID = "What is my cat called?"


def body_of(shape: AskedShape) -> bytes:
    return json.dumps(shape.body([{"role": "user", "content": SAID}], memory_context={"user_id": "u"})).encode()


async def statuses(stack: FilterStack, count: int) -> list[str]:
    """The memory status of so many chats of each API, one after the other; all of them answered, and quickly."""
    seen = []
    for shape in SHAPES * count:
        started = time.monotonic()
        answer = await stack.chat(body_of(shape), shape=shape)
        assert answer.status_code == 200
        assert time.monotonic() - started < 4.0
        seen.append(answer.headers.get("x-memory-status", "none"))
    return seen


@pytest_asyncio.fixture(loop_scope="session")
async def hurried(upstream: RecordingUpstream) -> AsyncIterator[FilterStack]:
    """Envoy waits for an answer as long as the product's does."""
    async with running_stack(upstream.url, is_patient=False) as running:
        yield running


async def test_without_a_filter_chats_are_answered_and_memory_returns_with_it(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url) as stack:
        assert set(await statuses(stack, 1)) == {"used"}
        await stack.filters[0].leave()
        assert set(await statuses(stack, 3)) == {"none"}
        assert [upstream.received[-2].body, upstream.received[-1].body] == [body_of(shape) for shape in SHAPES]
        stack.start_filter(unix_target(stack.plan.filter_sockets[0]))
        async with asyncio.timeout(20):
            while set(await statuses(stack, 1)) != {"used"}:
                await asyncio.sleep(0.05)


async def test_a_filter_that_leaves_takes_no_chat_with_it(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url, filters=2) as stack, asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(stack.filters[0].leave())
        seen: list[str] = []
        while not leaving.done():
            seen += await statuses(stack, 3)
        seen += await statuses(stack, 5)
        assert set(seen) == {"used"}


async def test_a_filter_that_hangs_costs_a_second_and_no_more(
    hurried: FilterStack, upstream: RecordingUpstream
) -> None:
    hurried.recall.seconds = 5.0
    assert set(await statuses(hurried, 1)) == {"none"}
    assert [upstream.received[-2].body, upstream.received[-1].body] == [body_of(shape) for shape in SHAPES]
    hurried.recall.seconds = 0.0
    assert set(await statuses(hurried, 1)) == {"used"}


async def test_chats_beyond_capacity_wait_for_nothing_and_are_recorded(upstream: RecordingUpstream) -> None:
    async with (
        running_stack(upstream.url, limits=TrafficLimits(filter_in_flight=2)) as stack,
        asyncio.TaskGroup() as tasks,
    ):
        stack.recall.seconds = 0.8
        waiting = [tasks.create_task(stack.chat(body_of(shape), shape=shape)) for shape in SHAPES]
        while len(stack.recall.asked) < 2:
            await asyncio.sleep(0.01)
        assert await statuses(stack, 1) == ["none"] * 2
        assert not any(answer.done() for answer in waiting), "the later ones waited for the first"
        assert [received.body for received in upstream.received[-2:]] == [body_of(shape) for shape in SHAPES]
        assert [(await answer).headers["x-memory-status"] for answer in waiting] == ["used"] * 2
        stack.recall.seconds = 0.0
        assert await statuses(stack, 1) == ["used"] * 2
        assert len(await stack.turns("u", until=6)) == 6


async def test_slow_uploads_do_not_keep_the_places_of_others(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url, limits=TrafficLimits(filter_in_flight=4)) as stack:
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            resume = asyncio.Event()
            slow = [tasks.create_task(slow_chat(stack, body_of(SHAPES[0]), resume)) for _ in range(4)]
            while stack.count("memproxy_bodies_passed_total", reason="slow_upload") < 3:
                await asyncio.sleep(0.05)
            assert set(await statuses(stack, 2)) == {"used"}
            resume.set()
        assert [one.result() for one in slow].count("none") >= 3, "they go on, without memory"
        assert [received.body for received in upstream.received].count(body_of(SHAPES[0])) >= 3, "as they came"


async def slow_chat(stack: FilterStack, body: bytes, resume: asyncio.Event) -> str:
    """The memory status of a chat whose body arrives in two halves."""

    async def halves() -> AsyncIterator[bytes]:
        yield body[: len(body) // 2]
        await resume.wait()
        yield body[len(body) // 2 :]

    headers = {"content-type": "application/json", "content-length": str(len(body))}
    async with stack.client() as client:
        answer = await client.post(SHAPES[0].shape.path, content=halves(), headers=headers)
    assert answer.status_code == 200
    return answer.headers.get("x-memory-status", "none")


async def test_a_large_body_is_given_the_time_that_it_takes(hurried: FilterStack) -> None:
    hurried.recall.seconds = 1.3  # stands for reading many MiB on a busy machine
    for shape in SHAPES:
        large = body_of(shape)[:-1] + b', "padding": "' + b"x" * (2 << 20) + b'"}'
        answer = await hurried.chat(large, shape=shape)
        assert answer.headers["x-memory-status"] == "used"
    assert set(await statuses(hurried, 1)) == {"none"}


async def test_an_error_of_ours_ends_one_stream_and_nothing_else(stack: FilterStack) -> None:
    stack.recall.error = RuntimeError(f"a mistake of ours, with {SAID} in it")
    with structlog.testing.capture_logs() as logs:
        assert set(await statuses(stack, 10)) == {"none"}, "answered, twenty times"
    assert [entry["error"] for entry in logs] == ["RuntimeError"] * 20
    assert SAID not in str(logs)
    stack.recall.error = None
    assert set(await statuses(stack, 10)) == {"used"}, "and it did not get this filter ejected"
