"""How long the stages of a recall took."""

from __future__ import annotations

import asyncio
import inspect
from time import perf_counter
from typing import Any

import pytest
import uvloop
from prometheus_client import CollectorRegistry

from memory.recall.trace import Trace
from memory.runtime.metrics import Metrics


@pytest.mark.soak("judges time")
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_stage_of_less_than_a_millisecond_has_a_duration(new_loop: Any) -> None:
    fields = [name for name, one in inspect.signature(Trace).parameters.items() if one.default is one.empty]
    trace = Trace(**dict.fromkeys(fields))

    metrics = Metrics(CollectorRegistry())

    async def staged() -> float:
        began = perf_counter()
        with trace.timed("embed", metrics):
            while perf_counter() < began + 0.0004:
                pass
        return (perf_counter() - began) * 1000

    with asyncio.Runner(loop_factory=new_loop) as runner:
        longest = runner.run(staged())
    assert 0.1 < trace.timings_ms["embed"] <= longest
    assert trace.timings_ms["embed"] % 1
    assert trace.stages[0].took * 1000 == trace.timings_ms["embed"]
