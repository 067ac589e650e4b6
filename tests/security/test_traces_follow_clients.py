"""A client's `traceparent` decides whether its request is traced, whatever share of the others is."""

from __future__ import annotations

import uuid

import httpx
import pytest
from filter_stack import running_stack
from trace_collector import TraceCollector
from upstream import RecordingUpstream

from memory.settings.tracing import TracingSettings


@pytest.mark.parametrize("ratio", [0.0, 1.0])
@pytest.mark.full("an Envoy for each share")
async def test_a_client_decides_for_its_own_trace(
    upstream: RecordingUpstream, trace_collector: TraceCollector, ratio: float
) -> None:
    tracing = TracingSettings(endpoint=trace_collector.url, sample_ratio=ratio)
    async with running_stack(upstream.url, tracing=tracing) as stack:
        for flag in ("00", "01"):
            parent = f"00-{uuid.uuid4().hex}-b7ad6b7169203331-{flag}"
            async with httpx.AsyncClient(trust_env=False) as client:
                body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
                url = f"http://127.0.0.1:{stack.settings.port}/v1/chat/completions"
                answer = await client.post(url, json=body, headers={"traceparent": parent}, timeout=30)
            assert answer.status_code == 200
            asked = upstream.last_chat().headers["traceparent"]
            assert (asked[:36], asked[-2:]) == (parent[:36], flag)
