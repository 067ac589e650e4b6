"""A bare Envoy and the product under the same load: times, statuses, and CPU of each part."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chats import SEARCHED, Answer, Chats, grown, samples
from report import added, percentiles, ratio
from rig import Rig

# A search that was begun and did not end: cut off by the deadline, or its embedding took too long.
LATE = ("memproxy_recall_late_total", 'memproxy_requests_total{reason="embedder",status="unavailable"}')
COLUMNS = (
    *("", "chats/s", "notes/s", "share", "bare p50", "+p50", "+p95", "+p99"),
    *("filter CPU", "Envoy CPU", "worker CPU", "Milvus CPU", "PostgreSQL CPU", "bench CPU"),
)


@dataclass
class Side:
    """What one side of a comparison saw."""

    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    unsent: int = 0
    asked: int = 0  # by a load that asks as each user in turn

    async def ask(self, chats: Chats, body: bytes) -> Answer:
        answer = await chats.ask(body)
        if answer.failure:
            self.statuses["failed"] += 1
        else:
            self.milliseconds.append(answer.milliseconds)
            self.statuses[answer.memory_status] += 1
        return answer

    @property
    def notes_a_second(self) -> float:
        return ratio(self.statuses["used"], self.seconds)

    def past(self, limit: float) -> int:
        return sum(took > limit for took in self.milliseconds) + self.unsent


@dataclass
class Compared:
    """A bare Envoy and the product under the same load, and what the product's parts spent on it."""

    name: str
    bare: Side = field(default_factory=Side)
    ours: Side = field(default_factory=Side)
    cpu: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    late: float = 0.0
    turned_away: float = 0.0
    embedded: float = 0.0

    @property
    def in_vain(self) -> float:
        """Questions that were embedded and got no answer from memory, of those that were turned away."""
        found = sum(self.ours.statuses[status] for status in SEARCHED)
        return max(0.0, self.embedded - found) / max(1.0, self.turned_away)

    def summary(self) -> dict[str, Any]:
        bare, ours = percentiles(self.bare.milliseconds), percentiles(self.ours.milliseconds)
        chats = self.ours.statuses.total()
        return {
            "chats": chats,
            "chats_a_second": ratio(chats, self.ours.seconds),
            "notes_a_second": self.ours.notes_a_second,
            "share_with_a_note": ratio(self.ours.statuses["used"], chats),
            "statuses": dict(self.ours.statuses),
            "reasons": dict(self.reasons),
            "bare_chats_a_second": ratio(self.bare.statuses.total(), self.bare.seconds),
            "bare": bare,
            "ours": ours,
            "added": added(ours, bare),
            "slowest": max(self.ours.milliseconds, default=math.nan),
            "late": self.late,
            "turned_away": self.turned_away,
            "embedded_in_vain": self.in_vain,
            "cpu_ms_a_chat": {part: ratio(1000 * spent, chats) for part, spent in self.cpu.items()},
            "cores_of_the_filters": ratio(self.cpu["filter"], self.ours.seconds),
            "cores_of_the_worker": ratio(self.cpu["worker"], self.ours.seconds),
        }

    def row(self) -> tuple[object, ...]:
        one, spent = self.summary(), self.summary()["cpu_ms_a_chat"]
        more, parts = one["added"], ("filter", "envoy", "worker", "milvus", "postgres", "bench")
        figures = (one["chats_a_second"], one["notes_a_second"], one["share_with_a_note"])
        return self.name, *figures, one["bare"]["p50"], *more.values(), *(spent.get(p, math.nan) for p in parts)


class Spending:
    """Adds to a comparison what the parts spend, and how many recalls the deadline cuts off, while it is open."""

    def __init__(self, rig: Rig, one: Compared, failures: Counter[str]) -> None:
        self._rig, self._one, self._failures = rig, one, failures

    async def __aenter__(self) -> None:
        self._page = await samples(self._rig.product.ports["metrics"], self._failures)
        self._before = self._rig.cpu_seconds()

    async def __aexit__(self, *_: object) -> None:
        self._one.cpu += self._rig.cpu_seconds() - self._before
        page = await samples(self._rig.product.ports["metrics"], self._failures)
        for name in LATE:
            self._one.late += grown(self._page, page, name)
        self._one.turned_away += grown(self._page, page, "memproxy_recall_shed_total")
        self._one.embedded += grown(self._page, page, 'memproxy_embed_seconds_count{lane="request"}')
        self._one.reasons += requests_by_reason(page) - requests_by_reason(self._page)


def requests_by_reason(page: Mapping[str, float] | None) -> Counter[str]:
    name = "memproxy_requests_total"
    return Counter({key.removeprefix(name): int(n) for key, n in (page or {}).items() if key.startswith(name)})


def merge(one: Compared, other: Compared) -> None:
    for mine, more in ((one.bare, other.bare), (one.ours, other.ours)):
        mine.seconds += more.seconds
        mine.milliseconds += more.milliseconds
        mine.statuses += more.statuses
        mine.asked += more.asked
    one.cpu += other.cpu
    one.late += other.late
    one.turned_away += other.turned_away
    one.embedded += other.embedded
    one.reasons += other.reasons
