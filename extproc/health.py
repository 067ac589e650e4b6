"""Tells Envoy whether this process accepts new streams, through gRPC's standard health service.

Before stopping, the process answers NOT_SERVING for long enough that every Envoy has noticed.
"""

from __future__ import annotations

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

CHECK_INTERVAL_SECONDS = 0.5  # Envoy's check interval; the same number is in envoy/envoy.yaml
DRAIN_SECONDS = 2 * CHECK_INTERVAL_SECONDS  # a check may be in progress when the answer changes; the next one sees it


class Health:
    """SERVING from the start until `leave`."""

    def __init__(self) -> None:
        self._servicer = health.aio.HealthServicer()

    async def join(self, server: grpc.aio.Server) -> None:
        """Register with this server, before it starts."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)
        await self._servicer.set("", health_pb2.HealthCheckResponse.SERVING)

    async def leave(self) -> None:
        """Answer NOT_SERVING from now on."""
        await self._servicer.enter_graceful_shutdown()
