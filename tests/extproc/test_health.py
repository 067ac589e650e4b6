"""What a filter answers to health checks, and how long it stays for those who have not heard that it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from extproc.health import CHECK_INTERVAL_SECONDS, LIVE, OBSERVE, RECALL, Health

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
ENVOY, SHELL = "Envoy/HC", "grpc-c"


class Checker:
    def __init__(self, target: str, agent: str) -> None:
        self._channel = grpc.aio.insecure_channel(target, options=(("grpc.primary_user_agent", agent),))
        self._stub = health_pb2_grpc.HealthStub(self._channel)

    async def asks(self, service: str = RECALL) -> int:
        answer = await self._stub.Check(health_pb2.HealthCheckRequest(service=service))
        return int(answer.status)

    async def close(self) -> None:
        await self._channel.close()


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Health, str]]:
    server, health, target = grpc.aio.server(), Health(), f"unix:{folder}/h.sock"
    await health.join(server)
    server.add_insecure_port(target)
    await server.start()
    try:
        yield health, target
    finally:
        await server.stop(0)


async def leaving_takes(health: Health, *, seconds_max: float = 5.0) -> float:
    began = asyncio.get_running_loop().time()
    await health.leave(seconds_max=seconds_max)
    return asyncio.get_running_loop().time() - began


async def test_recall_begins_with_enter_observing_at_once_and_only_life_goes_on_after_leaving(tmp_path: Path) -> None:
    async with serving(tmp_path) as (health, target):
        checker = Checker(target, SHELL)
        assert [await checker.asks(one) for one in (RECALL, OBSERVE, LIVE)] == [NOT_SERVING, SERVING, SERVING]
        await health.enter()
        assert [await checker.asks(one) for one in (RECALL, OBSERVE, LIVE)] == [SERVING, SERVING, SERVING]
        await health.leave()
        await health.enter()  # a warm-up that ends late takes nothing back
        assert [await checker.asks(one) for one in (RECALL, OBSERVE, LIVE)] == [NOT_SERVING, NOT_SERVING, SERVING]
        await checker.close()


async def test_it_stays_until_an_envoy_that_believes_in_it_has_asked_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as (health, target), asyncio.TaskGroup() as tasks:
        await health.enter()
        checker = Checker(target, ENVOY)
        assert [await checker.asks(one) for one in (RECALL, OBSERVE)] == [SERVING, SERVING]
        leaving = tasks.create_task(leaving_takes(health))
        await asyncio.sleep(CHECK_INTERVAL_SECONDS + 0.3)  # a busy Envoy
        assert not leaving.done()
        assert await checker.asks(RECALL) == NOT_SERVING
        await asyncio.sleep(CHECK_INTERVAL_SECONDS + 0.1)
        assert not leaving.done(), "its other cluster has not heard of it"
        assert await checker.asks(OBSERVE) == NOT_SERVING
        assert await leaving < 4.5
        await checker.close()


@pytest.mark.parametrize("agent", [ENVOY, SHELL])
async def test_who_is_gone_or_sends_no_chats_is_not_waited_for(tmp_path: Path, agent: str) -> None:
    async with serving(tmp_path) as (health, target):
        await health.enter()
        checker = Checker(target, agent)
        assert await checker.asks() == SERVING
        await checker.close()
        took = await leaving_takes(health, seconds_max=60)
        assert took < (6.0 if agent == ENVOY else 2.0)
