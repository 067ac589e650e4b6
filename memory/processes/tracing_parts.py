"""The tracer of a part, from the settings. Without an endpoint nothing of OpenTelemetry is imported."""

from __future__ import annotations

from contextlib import AsyncExitStack

from memory.runtime.tracing import NO_TRACER, Tracer
from memory.settings import Settings


async def open_tracer(settings: Settings, stack: AsyncExitStack, *, part: str) -> Tracer:
    """`part`: the process, as traces name it; empty: it makes none."""
    tracing = settings.tracing
    if not (tracing.endpoint and part):
        return NO_TRACER
    from memory.adapters.otlp import OtlpTracer  # takes 0.2 s and 20 MB, which few need

    tracer = OtlpTracer(tracing.endpoint, service=f"memproxy-{part}", sample_ratio=tracing.sample_ratio)
    return await stack.enter_async_context(tracer)
