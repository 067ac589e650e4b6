"""Filters that fail, start, leave or are elsewhere are never the client's trouble: Envoy answers every chat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
import pytest_asyncio
import structlog
from api_shapes import SHAPES, AskedShape
from filter_stack import EDGE_SECRET, FilterStack, running_stack
from upstream import RecordingUpstream

from extproc.addresses import HostAndPort, unix_target
from extproc.supervisor.locks_and_ports import reserve_port
from memory.model import TurnStatus

pytestmark = pytest.mark.asyncio(loop_scope="session")  # where the shared filter lives

SAID = "What is my cat called?"
HANG_SECONDS = 60.0
STREAM_CHUNKS = 600  # of 0.1 s: a minute, unless a test hurries them


def body_of(shape: AskedShape, user: str = "u", **more: object) -> bytes:
    said = [{"role": "user", "content": SAID}]
    return json.dumps(shape.body(said, memory_context={"user_id": user}, **more)).encode()


async def statuses(stack: FilterStack, count: int, *, user: str = "u") -> list[str]:
    """The memory status of so many chats of each API, one after the other; all of them answered."""
    seen = []
    for shape in SHAPES * count:
        answer = await stack.chat(body_of(shape, user), shape=shape)
        assert answer.status_code == 200
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
        assert [received.body for received in upstream.received[-len(SHAPES) :]] == [body_of(shape) for shape in SHAPES]
        stack.start_filter(unix_target(stack.plan.filter_sockets[0]))
        await used_again(stack)


async def test_a_filter_that_leaves_takes_no_chat_with_it(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url, filters=2) as stack, asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(stack.filters[0].leave())
        seen: list[str] = []
        while not leaving.done():
            seen += await statuses(stack, 3)
        seen += await statuses(stack, 5)
        assert set(seen) == {"used"}


async def used_again(stack: FilterStack) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while set(await statuses(stack, 1)) != {"used"}:
            await asyncio.sleep(0.05)


async def test_a_filter_that_hangs_is_not_waited_for_for_ever(
    hurried: FilterStack, upstream: RecordingUpstream
) -> None:
    hurried.recall.may_end.clear()
    assert set(await statuses(hurried, 1)) == {"none"}
    assert [received.body for received in upstream.received[-len(SHAPES) :]] == [body_of(shape) for shape in SHAPES]
    hurried.recall.may_end.set()
    await used_again(hurried)


async def test_chats_beyond_capacity_wait_for_nothing_and_are_recorded(upstream: RecordingUpstream) -> None:
    async with (
        running_stack(upstream.url, memory={"filter_in_flight_max": len(SHAPES)}) as stack,
        asyncio.TaskGroup() as tasks,
    ):
        stack.recall.may_end.clear()
        waiting = [tasks.create_task(stack.chat(body_of(shape), shape=shape)) for shape in SHAPES]
        async with asyncio.timeout(HANG_SECONDS):
            while len(stack.recall.asked) < len(SHAPES):
                await asyncio.sleep(0.01)
        assert await statuses(stack, 1) == ["none"] * len(SHAPES)
        assert not any(answer.done() for answer in waiting), "the later ones waited for the first"
        assert [received.body for received in upstream.received[-len(SHAPES) :]] == [body_of(shape) for shape in SHAPES]
        stack.recall.may_end.set()
        assert [(await answer).headers["x-memory-status"] for answer in waiting] == ["used"] * len(SHAPES)
        assert await statuses(stack, 1) == ["used"] * len(SHAPES)
        assert len(await stack.turns("u", until=3 * len(SHAPES))) == 3 * len(SHAPES)


async def test_slow_uploads_do_not_keep_the_places_of_others(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url, memory={"filter_in_flight_max": 4}) as stack:
        async with asyncio.timeout(HANG_SECONDS), asyncio.TaskGroup() as tasks:
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


@pytest.mark.soak("Envoy waits for a filter that long, and no longer")
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
        assert set(await statuses(stack, 10)) == {"none"}, "answered, each of them"
    assert [entry["error"] for entry in logs] == ["RuntimeError"] * 10 * len(SHAPES)
    assert SAID not in str(logs)
    stack.recall.error = None
    assert set(await statuses(stack, 10)) == {"used"}, "and it did not get this filter ejected"


async def test_a_filter_that_is_starting_records_chats_and_is_asked_for_nothing(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url) as stack:
        await stack.filters[0].leave()
        starting = stack.start_filter(unix_target(stack.plan.filter_sockets[0]), is_ready=False)
        async with asyncio.timeout(HANG_SECONDS):
            while not await stack.healthy("observe"):
                await asyncio.sleep(0.05)
        assert await stack.healthy("inject") == 0
        asked = len(stack.recall.asked)
        assert await statuses(stack, 2, user="early") == ["none"] * 2 * len(SHAPES)
        assert len(stack.recall.asked) == asked
        assert len(await stack.turns("early", until=2 * len(SHAPES))) == 2 * len(SHAPES)
        starting.ready.set()
        await used_again(stack)


@pytest.mark.full("two filters leave in the middle of replies")
async def test_a_filter_that_leaves_records_replies_or_leaves_turns_unknown(upstream: RecordingUpstream) -> None:
    """The client notices nothing in either case."""
    for grace, ends in ((HANG_SECONDS, TurnStatus.CLOSED), (0.5, TurnStatus.UNKNOWN)):
        upstream.chunk_seconds, upstream.chunk_count = 0.1, STREAM_CHUNKS
        async with running_stack(upstream.url) as stack, asyncio.TaskGroup() as tasks:
            await stack.filters[0].leave()
            filter_ = stack.start_filter(unix_target(stack.plan.filter_sockets[0]), grace=grace)
            await stack.wait_for_filters(1)
            upstream.streamed.clear()
            body = body_of(SHAPES[0], "listener", stream=True)
            streaming = tasks.create_task(stack.chat(body))
            async with asyncio.timeout(HANG_SECONDS):
                while not upstream.streamed or not await stack.turns("listener"):
                    await asyncio.sleep(0.02)
            leaving = tasks.create_task(filter_.leave())
            if ends is TurnStatus.UNKNOWN:
                await leaving
            else:
                async with asyncio.timeout(HANG_SECONDS):
                    while await stack.healthy("inject"):
                        await asyncio.sleep(0.05)
                assert not leaving.done(), "it left before the reply had ended"
            assert not streaming.done()
            upstream.chunk_seconds = 0.0
            assert (await streaming).content == b"".join(upstream.streamed)
            await leaving
            [turn] = await stack.turns("listener", until=1)
            assert (turn.status, turn.answer.count("x")) == (ends, STREAM_CHUNKS if turn.answer else 0)


async def test_filters_at_addresses_believe_only_the_envoy_that_knows_their_secret(upstream: RecordingUpstream) -> None:
    with ExitStack() as reserved:
        ports = [
            reserved.enter_context(reserve_port("127.0.0.1", 0, setting="a port of the test")).getsockname()[1]
            for _ in range(2)
        ]
        addresses = tuple(HostAndPort("127.0.0.1", port) for port in ports)
        async with running_stack(upstream.url, addresses=addresses, secret=EDGE_SECRET) as stack:
            assert await statuses(stack, 3) == ["used"] * 3 * len(SHAPES)
            assert len(await stack.turns("u", until=3 * len(SHAPES))) == 3 * len(SHAPES)
        async with running_stack(upstream.url, addresses=addresses, secret="another") as stack:
            assert await statuses(stack, 2, user="v") == ["none"] * 2 * len(SHAPES)
            assert stack.recall.asked == []
            assert await stack.turns("v") == []
