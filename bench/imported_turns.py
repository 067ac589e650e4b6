"""Imports turns through REST and waits until the worker has learnt them: how fast, and at what cost."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from chats import Rest
from report import ratio
from rig import Rig

DRAIN_SECONDS_MAX = 120.0
UNLEARNT = ("opened", "due", "leased", "retrying", "dead")
WRITERS = 16  # calls of REST at a time


@dataclass(frozen=True, slots=True)
class Learnt:
    """`left_over`: turns that were not learnt in time; NaN if nobody could say."""

    turns: int
    seconds: float
    worker_cpu_seconds: float
    left_over: float

    @property
    def a_second(self) -> float:
        return ratio(self.turns - self.left_over, self.seconds)

    @property
    def worker_cpu_ms(self) -> float:
        """Of each turn."""
        return ratio(1000 * self.worker_cpu_seconds, self.turns)


async def learnt(
    rig: Rig, users: Sequence[str], turns: Sequence[tuple[str, str]], failures: Counter[str], *, first: int = 0
) -> Learnt:
    """All at once. `first`: the number of the first turn; five make a session."""
    numbered = iter(enumerate(turns, first))
    spent, began = rig.cpu_seconds(), time.perf_counter()

    async def send(rest: Rest) -> None:
        for number, (message, answer) in numbered:
            said = [{"role": "user", "content": message}, {"role": "assistant", "content": answer}]
            at = time.time()  # noqa: TID251 - a bench has a clock
            body = {"session_id": f"s-{number // 5}", "at": at, "messages": said}
            await rest.post("/v1/memory/turns", users[number % len(users)], body)

    async with Rest(rig.product.api, failures) as rest:
        await asyncio.gather(*(send(rest) for _ in range(WRITERS)))
        left_over = await drained(rest)
    took, spent = time.perf_counter() - began, rig.cpu_seconds() - spent
    return Learnt(len(turns), took, spent["worker"], left_over)


async def drained(rest: Rest) -> float:
    """How many turns are not learnt; returns once there is none, or after so long that the figures show it."""
    until, waiting = time.monotonic() + DRAIN_SECONDS_MAX, float("nan")
    while time.monotonic() < until:
        queue = await rest.get("/v1/memory/operator/queue", "")
        waiting = float("nan") if queue is None else sum(queue[state] for state in UNLEARNT)
        if waiting == 0:
            break
        await asyncio.sleep(0.25)
    return waiting
