"""Tells Envoy whether this process takes new streams, by gRPC's standard health service.

It must say no before we stop, and long enough before it for every Envoy to have heard it.
"""

from __future__ import annotations

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

CHECK_INTERVAL_SECONDS = 0.5  # how often Envoy asks; the same number stands in envoy/envoy.yaml
DRAIN_SECONDS = 2 * CHECK_INTERVAL_SECONDS  # one check may be under way when we change our answer; the next one sees it


class Health:
    """Serving from the start, until `leave`."""

    def __init__(self) -> None:
        self._servicer = health.aio.HealthServicer()

    async def join(self, server: grpc.aio.Server) -> None:
        """Answer on this server. Call before it starts."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)
        await self._servicer.set("", health_pb2.HealthCheckResponse.SERVING)

    async def leave(self) -> None:
        """Answer NOT_SERVING from now on, for good."""
        await self._servicer.enter_graceful_shutdown()
