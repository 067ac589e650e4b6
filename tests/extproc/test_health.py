"""What a filter answers to health checks, and how long it stays for those who have not heard that it leaves."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from virtual_time import in_virtual_time, now

from extproc.health import CHECK_INTERVAL_SECONDS, LIVE, OBSERVE, POLL_SECONDS, RECALL, RECENT_SECONDS, Health

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
ENVOY, SHELL = "Envoy/HC", "grpc-c"


async def test_recall_begins_with_enter_observing_at_once_and_only_life_goes_on_after_leaving(tmp_path: Path) -> None:
    server, health, target = grpc.aio.server(), Health(), f"unix:{tmp_path}/h.sock"
    await health.join(server)
    server.add_insecure_port(target)
    await server.start()
    async with grpc.aio.insecure_channel(target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)

        async def answers() -> list[int]:
            asked = [health_pb2.HealthCheckRequest(service=one) for one in (RECALL, OBSERVE, LIVE)]
            return [(await stub.Check(one)).status for one in asked]

        assert await answers() == [NOT_SERVING, SERVING, SERVING]
        await health.enter()
        assert await answers() == [SERVING, SERVING, SERVING]
        await health.leave()
        await health.enter()  # a warm-up that ends late takes nothing back
        assert await answers() == [NOT_SERVING, NOT_SERVING, SERVING]
    await server.stop(0)


async def entered() -> Health:
    """Of a filter whose server nobody starts: checks are calls."""
    health = Health()
    taken = dict.fromkeys(("add_generic_rpc_handlers", "add_registered_method_handlers"), lambda *_: None)
    await health.join(SimpleNamespace(**taken))  # type: ignore[arg-type]
    await health.enter()
    return health


async def asked(health: Health, service: str, agent: str = ENVOY) -> int:
    context = SimpleNamespace(invocation_metadata=lambda: (("user-agent", agent),), peer=lambda: "unix:envoy")
    answer = await health._servicer.Check(health_pb2.HealthCheckRequest(service=service), context)
    return int(answer.status)


@in_virtual_time
async def test_it_stays_until_an_envoy_that_believes_in_it_has_asked_again() -> None:
    health = await entered()
    assert [await asked(health, one) for one in (RECALL, OBSERVE)] == [SERVING, SERVING]
    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(health.leave())
        await asyncio.sleep(2 * CHECK_INTERVAL_SECONDS)  # a busy Envoy
        assert await asked(health, RECALL) == NOT_SERVING
        await asyncio.sleep(CHECK_INTERVAL_SECONDS + POLL_SECONDS)
        assert not leaving.done(), "its other cluster has not heard of it"
        assert await asked(health, OBSERVE) == NOT_SERVING
        heard_at = now()
    assert now() <= heard_at + CHECK_INTERVAL_SECONDS + 2 * POLL_SECONDS


@pytest.mark.parametrize(("agent", "seconds"), [(ENVOY, RECENT_SECONDS), (SHELL, 0.0)])
@in_virtual_time
async def test_who_is_gone_or_sends_no_chats_is_not_waited_for(agent: str, seconds: float) -> None:
    health = await entered()
    assert await asked(health, RECALL, agent) == SERVING
    await health.leave(seconds_max=60)
    assert now() <= seconds + CHECK_INTERVAL_SECONDS + 2 * POLL_SECONDS
