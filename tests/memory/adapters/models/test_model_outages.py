"""Outages of a chat model, on a real server: what is sent again, who asks while it is down, and how it shows."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import pytest
from chat_server import FakeModelServer, running_chat_server
from prometheus_client import CollectorRegistry

from memory.adapters.breaker import Breaker
from memory.adapters.models.openai_chat import ChatServer, OpenAiChatModel
from memory.errors import Late, Unavailable, Unusable
from memory.model import Message
from memory.ports import Completion
from memory.runtime.metrics import Metrics

ASKED = (Message("user", "Say hello."),)
REST_SECONDS = 0.2


class Guarded:
    """A model behind a breaker that opens at the second slow answer, and its counters."""

    def __init__(self, url: str) -> None:
        self.metrics = Metrics(CollectorRegistry())
        breaker = Breaker("model", failures_max=2, rest_seconds=REST_SECONDS)
        self.model = OpenAiChatModel(ChatServer(url, "m"), metrics=self.metrics, breaker=breaker)

    async def ask(self, *, seconds: float = 5.0) -> Completion:
        return await self.model.complete(ASKED, max_tokens=7, seconds=seconds)

    async def fail(self, *, seconds: float = 5.0) -> str:
        with pytest.raises(Unavailable) as raised:
            await self.ask(seconds=seconds)
        assert not isinstance(raised.value, Unusable)
        return str(raised.value)

    def calls(self, outcome: str) -> float:
        labels = {"role": "model", "outcome": outcome}
        return self.metrics.registry.get_sample_value("memproxy_model_calls_total", labels) or 0.0


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with running_chat_server() as running:
        yield running


@pytest.fixture
async def guarded(server: FakeModelServer) -> AsyncIterator[Guarded]:
    made = Guarded(server.url)
    async with made.model:
        yield made


async def test_a_connection_that_was_kept_and_closed_meanwhile_costs_one_more_sending(
    server: FakeModelServer, guarded: Guarded
) -> None:
    await guarded.ask()
    server.hang_ups = 1
    assert (await guarded.ask()).text == "{}"
    assert len(server.asked) == 3


async def test_a_server_that_hangs_up_twice_is_not_asked_a_third_time(
    server: FakeModelServer, guarded: Guarded
) -> None:
    server.hang_ups = 9
    assert "Error" in await guarded.fail()
    assert len(server.asked) == 2


async def test_an_answer_that_breaks_off_is_not_asked_for_again(server: FakeModelServer, guarded: Guarded) -> None:
    server.breaks_off = True
    await guarded.fail()
    assert len(server.asked) == 1


async def test_both_sendings_together_keep_to_the_time_of_one(server: FakeModelServer, guarded: Guarded) -> None:
    server.hang_ups, server.seconds = 1, 0.0
    await guarded.ask()
    server.hang_ups, server.drips = 1, True
    began = time.monotonic()
    assert "no answer within 0.3 s" in await guarded.fail(seconds=0.3)
    assert time.monotonic() - began < 0.6


async def test_while_a_frozen_model_is_tried_nobody_else_waits_for_it(
    server: FakeModelServer, guarded: Guarded
) -> None:
    server.seconds = 30.0
    for _ in range(2):
        await guarded.fail(seconds=0.1)
    await asyncio.sleep(REST_SECONDS)
    asked = len(server.asked)
    async with asyncio.TaskGroup() as group:
        probe = group.create_task(guarded.fail(seconds=1.0))
        await asyncio.sleep(2 * REST_SECONDS)  # longer than its rest: the probe is still under way
        began = time.monotonic()
        for _ in range(20):
            assert "no answer within" in await guarded.fail(seconds=30.0)
        assert time.monotonic() - began < 0.3
        assert not probe.done()
    assert len(server.asked) == asked + 1
    assert (guarded.calls("late"), guarded.calls("failed"), guarded.calls("spared")) == (3, 0, 20)


async def test_an_answer_too_late_is_told_from_a_server_that_is_away_also_by_those_who_are_spared(
    server: FakeModelServer, guarded: Guarded
) -> None:
    server.seconds = 30.0
    for _ in range(3):
        with pytest.raises(Late, match=r"no answer within 0\.1 s"):
            await guarded.ask(seconds=0.1)
    assert guarded.calls("spared") == 1
    server.status, server.seconds = 503, 0.0
    await asyncio.sleep(REST_SECONDS)
    for _ in range(2):
        with pytest.raises(Unavailable, match="503") as raised:
            await guarded.ask()
        assert not isinstance(raised.value, Late)


async def test_a_server_that_does_not_take_the_connection_is_away_rather_than_late() -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for one in (first, second):  # more than it lets wait
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        guarded = Guarded(f"http://127.0.0.1:{full.getsockname()[1]}")
        async with guarded.model:
            with pytest.raises(Unavailable) as raised:
                await guarded.ask(seconds=0.3)
    assert not isinstance(raised.value, Late)


async def test_one_slow_answer_keeps_nobody_off(server: FakeModelServer, guarded: Guarded) -> None:
    server.seconds = 30.0
    await guarded.fail(seconds=0.1)
    server.seconds = 0.0
    assert (await guarded.ask()).text == "{}"
    assert guarded.calls("spared") == 0


async def test_a_model_that_is_back_is_found_by_the_next_try_and_serves_all(
    server: FakeModelServer, guarded: Guarded
) -> None:
    server.status = 503
    for _ in range(2):
        await guarded.fail()
    server.status = 200
    assert "it answered 503" in await guarded.fail()  # it still rests, and says what was wrong
    await asyncio.sleep(REST_SECONDS)
    answers = [await guarded.ask() for _ in range(3)]
    assert {one.text for one in answers} == {"{}"}


async def test_a_refused_connection_needs_no_second_try_to_be_believed() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        guarded = Guarded(f"http://127.0.0.1:{free.getsockname()[1]}")
    async with guarded.model:
        assert "ConnectError" in await guarded.fail()
        assert "ConnectError" in await guarded.fail()
    assert (guarded.calls("failed"), guarded.calls("spared")) == (1, 1)


async def test_answers_of_no_use_are_no_outage_however_many(server: FakeModelServer, guarded: Guarded) -> None:
    server.body = b"<html>hello</html>"
    for _ in range(5):
        with pytest.raises(Unusable):
            await guarded.ask()
    assert (guarded.calls("unusable"), guarded.calls("spared")) == (5, 0)
