"""What a part tells the time by, counts and traces with, and spreads its retries by: handed in, never fetched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memory.runtime.metrics import Metrics
from memory.runtime.tracing import NO_TRACER, Tracer


def no_jitter() -> float:
    """Whoever retries waits as long as they may."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Telemetry:
    """`clock` shows Unix seconds; `jitter` draws a number in 0..1."""

    clock: Callable[[], float]
    metrics: Metrics
    jitter: Callable[[], float] = no_jitter
    tracer: Tracer = NO_TRACER
