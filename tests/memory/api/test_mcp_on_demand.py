"""The MCP server that is loaded with the first call, where it cannot be loaded."""

from __future__ import annotations

import httpx
import pytest
from api_parts import ANN
from library_parts import Parts
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from memory.api.mcp_on_demand import PATHS, McpOnDemand, McpServer
from memory.api.rest import create_app
from memory.processes.composition import SYSTEM_CLOCK
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics


def load_broken() -> McpServer:
    import memory.api.no_such_module  # type: ignore[import-not-found]  # as an SDK that is not there

    raise AssertionError(memory.api.no_such_module)


@pytest.mark.parametrize("path", PATHS)
async def test_without_its_sdk_mcp_is_503_and_the_rest_goes_on(parts: Parts, path: str) -> None:
    mcp = McpOnDemand(load_broken)
    app = create_app(
        parts.library,
        identity_mode="development",
        edge_secret="",
        instruments=Instruments(SYSTEM_CLOCK, Metrics(CollectorRegistry())),
        routes=mcp.routes,
    )
    transport = httpx.ASGITransport(app)
    async with mcp.running(), httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=ANN) as api:
        with capture_logs() as logs:
            for _ in range(3):
                answer = await api.post(path, json={})
                assert answer.status_code == 503
                assert answer.json()["error"]["code"] == "unavailable"
                assert (await api.get("/v1/memory/stats")).status_code == 200
    assert [line["log_level"] for line in logs] == ["error"]
    assert logs[0]["module"] == "memory.api.no_such_module"
