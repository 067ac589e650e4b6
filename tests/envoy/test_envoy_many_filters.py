"""Filters that start, leave, or are on other hosts, behind a real Envoy: which chats reach them, what is recorded."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack

from filter_stack import EDGE_SECRET, FilterStack, running_stack
from upstream import RecordingUpstream

from extproc.addresses import HostAndPort, unix_target
from extproc.supervisor.locks_and_ports import reserve_port
from memory.model import TurnStatus

BODY = {"model": "m", "messages": [{"role": "user", "content": "What is my cat called?"}]}
STREAM_SECONDS = 4.0  # longer than a filter needs to leave


def body_of(user: str, *, is_streamed: bool = False) -> bytes:
    return json.dumps({**BODY, "stream": is_streamed, "memory_context": {"user_id": user}}).encode()


async def statuses(stack: FilterStack, user: str, count: int) -> list[str]:
    answers = [await stack.chat(body_of(user)) for _ in range(count)]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.headers.get("x-memory-status", "none") for answer in answers]


async def healthy(stack: FilterStack, role: str) -> int:
    async with stack.client() as client:
        page = await client.get(
            f"http://127.0.0.1:{stack.plan.admin_port}/stats",
            params={"filter": f"^cluster.memory_{role}.membership_healthy$"},
        )
    return int(page.text.rpartition(":")[2])


async def test_a_filter_that_is_starting_records_chats_and_is_asked_for_nothing(upstream: RecordingUpstream) -> None:
    async with running_stack(upstream.url) as stack:
        await stack.filters[0].leave()
        starting = stack.start_filter(unix_target(stack.plan.filter_sockets[0]), is_ready=False)
        async with asyncio.timeout(30):
            while not await healthy(stack, "observe"):
                await asyncio.sleep(0.05)
        assert await healthy(stack, "inject") == 0
        asked = len(stack.recall.asked)
        assert await statuses(stack, "early", 3) == ["none"] * 3
        assert len(stack.recall.asked) == asked
        assert len(await stack.turns("early", until=3)) == 3
        starting.signs.ready.set()
        async with asyncio.timeout(30):
            while await statuses(stack, "early", 1) != ["used"]:
                await asyncio.sleep(0.05)


async def test_a_leaving_filter_records_replies_to_their_end(upstream: RecordingUpstream) -> None:
    upstream.chunk_seconds, upstream.chunk_count = 0.1, int(STREAM_SECONDS / 0.1)
    async with running_stack(upstream.url) as stack:
        await stack.filters[0].leave()
        leaving = stack.start_filter(unix_target(stack.plan.filter_sockets[0]), grace=30)
        await stack.wait_for_filters(1)
        async with asyncio.TaskGroup() as tasks:
            streaming = tasks.create_task(stack.chat(body_of("listener", is_streamed=True)))
            while not stack.recall.asked:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)
            await leaving.leave()
            assert streaming.done(), "it left before the reply had ended"
        [turn] = await stack.turns("listener", until=1)
        assert turn.status is TurnStatus.CLOSED
        assert turn.answer.count("x") == upstream.chunk_count


async def test_filters_at_addresses_believe_only_the_envoy_that_knows_their_secret(upstream: RecordingUpstream) -> None:
    with ExitStack() as reserved:
        ports = [
            reserved.enter_context(reserve_port("127.0.0.1", 0, setting="a port of the test")).getsockname()[1]
            for _ in range(2)
        ]
        addresses = tuple(HostAndPort("127.0.0.1", port) for port in ports)
        async with running_stack(upstream.url, filter_addresses=addresses, secret=EDGE_SECRET) as stack:
            assert await statuses(stack, "u", 6) == ["used"] * 6
            assert len(await stack.turns("u", until=6)) == 6
        async with running_stack(upstream.url, filter_addresses=addresses, secret="another") as stack:
            assert await statuses(stack, "v", 4) == ["none"] * 4
            assert stack.recall.asked == []
            assert await stack.turns("v") == []
