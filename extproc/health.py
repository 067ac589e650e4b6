"""Tells Envoy which streams this process accepts, through gRPC's standard health service.

Observing works from the start, recall only once it has searched: a chat must not be sent to a filter that is starting.
Before stopping, the process answers NOT_SERVING until every Envoy that asks has heard it, however slowly it asks.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

CHECK_INTERVAL_SECONDS = 0.5  # Envoy's check interval; the same number is in envoy/envoy.yaml
RECENT_SECONDS = 2.5  # who has not asked for five intervals is gone, as Envoy is when all of `up` stops
DRAIN_SECONDS_MAX = 5.0  # an Envoy that died after asking never hears it
CHECKERS_MAX = 10_000  # reconnecting Envoys leave old addresses behind
POLL_SECONDS = 0.02

RECALL = ""  # the name that is asked for where none is given
OBSERVE = "observe"
# For those who would restart a process that does not answer: it may be starting, or finishing its streams.
LIVE = "live"

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health:
    """`observe` and `live` are SERVING from the start, recall from `enter`; all but `live` end with `leave`."""

    def __init__(self) -> None:
        self._servicer = _Servicer()
        self._has_left = False

    async def join(self, server: grpc.aio.Server) -> None:
        """Register with this server, before it starts."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)
        await self._servicer.set(RECALL, _NOT_SERVING)
        await self._servicer.set(OBSERVE, _SERVING)
        await self._servicer.set(LIVE, _SERVING)

    async def enter(self) -> None:
        """Answer SERVING for recall from now on, unless this process has left."""
        if not self._has_left:
            await self._servicer.set(RECALL, _SERVING)

    async def leave(self, *, seconds_max: float = DRAIN_SECONDS_MAX) -> None:
        """Answer NOT_SERVING from now on; return once no Envoy sends new streams any more, or after `seconds_max`."""
        self._has_left = True
        for service in (RECALL, OBSERVE):
            await self._servicer.set(service, _NOT_SERVING)
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds_max
        while self._servicer.believers(loop.time()) and loop.time() < until:  # noqa: ASYNC110 - each Envoy by itself
            await asyncio.sleep(POLL_SECONDS)
        await asyncio.sleep(CHECK_INTERVAL_SECONDS)  # for Envoy's main thread to tell the others


class _Servicer(health.aio.HealthServicer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self._answered: dict[tuple[str, str], tuple[float, bool]] = {}

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: ANN401, N802 - as gRPC names and types it
        answer = await super().Check(request, context)
        agent = str(dict(context.invocation_metadata() or ()).get("user-agent", ""))
        if agent.startswith("Envoy"):  # others ask out of curiosity, and send no chats
            if len(self._answered) > CHECKERS_MAX:
                self._answered.clear()
            now = asyncio.get_running_loop().time()
            self._answered[context.peer(), request.service] = now, answer.status == _SERVING
        return answer

    def believers(self, now: float) -> int:
        """How many Envoys would still send streams."""
        return sum(is_serving and at > now - RECENT_SECONDS for at, is_serving in self._answered.values())
