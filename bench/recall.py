"""Measures the cost of memory for one chat by number of memories, freshness after writes, and many new users at once.

`python bench/recall.py [SECONDS [SCENARIO...]]`; a scenario is selected by any part of its name. Every question is a
new text, so that every one costs an embedding. Added time is against a bare Envoy in the same run; the embedding's own
time is that of the same kind of question through the product's own embedder, opened in this process, in turn with the
chats. For throughput see `bench/load.py`.

In "writes" four users store a memory and ask for it at once, while four clients chat: an answer whose note lacks
it was made from a stale set. 1,000 users then use a filter that knows none of them. Milvus Lite answers one
query at a time, and needs 50 to 150 ms for each on so many rows, so that it could search for ten such chats a second;
it is asked for many users' sets at a time instead, and chats go on without memory until theirs is there. What counts is
that the share grows to 1: in the row "again" it is about the share of users who were loaded in the row "first".
"""

from __future__ import annotations

import asyncio
import itertools
import math
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import uvloop
from chats import SEARCHED, Answer, Chats, Rest, chat, connected, grown, samples
from memories import fill, new_questions
from report import Bar, Report, Sheet, added, bench_parser, percentiles, ratio
from rich.console import Console
from rig import Rig, running_rig
from sides import LATE

from memory.ports import Embedder
from memory.processes.composition import open_embedder
from memory.settings.loader import from_process

BARS = (
    Bar("1 x 1,000: added p50 beyond the embedding", "ms", at_most=4.0),
    Bar("1 x 1,000: added p99", "ms", at_most=40.0),
    Bar("writes: found at once", at_least=1),
    Bar("writes: stale notes", at_most=0),
    Bar("failed chats", at_most=0),
)
BARE_SECONDS = 2.0
WARM_SECONDS_MAX = 60.0
WRITE_PAUSE_SECONDS = 0.2  # between two writes of one user
RECEIPT_SECONDS_MAX = 10.0  # they are written behind the chat
CHATS_A_SECOND = 60  # of SECONDS, where one client turns to each side by turns
CROWD, CROWD_MEMORIES = 1_000, 20

console = Console(stderr=True)


@dataclass
class Measured:
    """Chats of one scenario: milliseconds and what `x-memory-status` said, and how long it all took."""

    seconds: float = 0.0
    bare: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    embedding: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    fresh: int = 0  # searches right after a write that found it
    stale: int = 0  # and those that did not
    late: float = 0.0
    turned_away: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)

    def add(self, answer: Answer) -> None:
        self.statuses["failed" if answer.failure else answer.memory_status] += 1
        if not answer.failure:
            self.ours.append(answer.milliseconds)

    def add_bare(self, answer: Answer) -> None:
        if not answer.failure:
            self.bare.append(answer.milliseconds)

    @property
    def searched_share(self) -> float:
        return ratio(sum(self.statuses[status] for status in SEARCHED), self.statuses.total())

    @property
    def added(self) -> dict[str, float]:
        return added(percentiles(self.ours), percentiles(self.bare))

    def summary(self) -> dict[str, object]:
        return {
            "chats": self.statuses.total(),
            "chats_a_second": ratio(self.statuses.total(), self.seconds),
            "searched_share": self.searched_share,
            "statuses": dict(self.statuses),
            "bare": percentiles(self.bare),
            "ours": percentiles(self.ours),
            "added": self.added,
            "embedding": percentiles(self.embedding),
            **({"writes": self.writes, "fresh": self.fresh, "stale": self.stale} if self.writes else {}),
            "late": self.late,
            "turned_away": self.turned_away,
            "stages_mean_ms": self.stages,
        }

    def row(self, name: str) -> tuple[object, ...]:
        embedding = percentiles(self.embedding)["p50"]
        written = f"{self.fresh} / {self.stale}" if self.writes else ""
        figures = (ratio(self.statuses.total(), self.seconds), self.searched_share, self.late, self.turned_away)
        return name, *self.added.values(), embedding, *figures, written


COLUMNS = ("", "+p50", "+p95", "+p99", "embed p50", "chats/s", "searched", "late", "turned away", "fresh / stale")


# Measuring


class Bench:
    def __init__(self, rig: Rig, embedder: Embedder, failures: Counter[str]) -> None:
        self._rig, self._embedder, self._failures = rig, embedder, failures
        self._questions = new_questions()

    def _question(self, user: str) -> bytes:
        return chat(next(self._questions), user)

    async def warm(self, users: Sequence[str]) -> None:
        """Ask for each user until their memories are held by the filter; one who never gets there will show."""
        async with connected(self._rig.port, 1, self._failures) as [chats]:
            for user in users:
                found = 0
                give_up_at = time.monotonic() + WARM_SECONDS_MAX
                while found < 5 and time.monotonic() < give_up_at:
                    answer = await chats.ask(self._question(user))
                    found = found + 1 if answer.memory_status in SEARCHED else 0
                    if not found:
                        await asyncio.sleep(0.05)

    async def alone(self, *, user: str, chats: int) -> Measured:
        """One client, taking turns between the bare Envoy, the product and the embedder alone."""
        await self.warm([user])
        measured = Measured()
        async with (
            connected(self._rig.bare_port, 1, self._failures) as [bare],
            connected(self._rig.port, 1, self._failures) as [ours],
            self._counting(measured),
        ):
            for _ in range(chats):
                measured.add_bare(await bare.ask(self._question(user)))
                measured.add(await ours.ask(self._question(user)))
                question = next(self._questions)
                started = time.perf_counter()
                await self._embedder.embed([question], is_urgent=True, as_query=True)
                measured.embedding.append((time.perf_counter() - started) * 1000)
        measured.seconds = sum(measured.ours) / 1000
        return measured

    async def together(
        self, *, clients: int, seconds: float, users: Sequence[str], writes: bool = False, warm: bool = True
    ) -> Measured:
        """Clients that ask again as soon as they are answered, for one user after the other."""
        if warm:
            await self.warm(users)
        measured, numbers = Measured(), itertools.count()

        async def ask_on(chats: Chats, until: float, note: Callable[[Answer], None]) -> None:
            while time.perf_counter() < until:
                note(await chats.ask(self._question(users[next(numbers) % len(users)])))

        async with connected(self._rig.bare_port, clients, self._failures) as bare:
            until = time.perf_counter() + BARE_SECONDS
            await asyncio.gather(*(ask_on(chats, until, measured.add_bare) for chats in bare))
        numbers = itertools.count()
        async with connected(self._rig.port, clients, self._failures) as ours, self._counting(measured):
            started = time.perf_counter()
            until = started + seconds
            writing = [self._write_on(user, until, measured) for user in users] if writes else []
            await asyncio.gather(*(ask_on(chats, until, measured.add) for chats in ours), *writing)
            measured.seconds = time.perf_counter() - started
        return measured

    async def _write_on(self, user: str, until: float, measured: Measured) -> None:
        """Store a memory, and ask for it at once.

        Only a chat that was given some memories can be stale: one that is turned away tells nothing.
        """
        async with (
            Rest(self._rig.product.api, self._failures) as rest,
            connected(self._rig.port, 1, self._failures) as [chats],
        ):
            for number in itertools.count():
                if time.perf_counter() > until:
                    return
                word = secrets.token_hex(4)
                ids = await rest.add(user, [f"My key for locker {word} hangs in the hall, at hook {number}."])
                answer = await chats.ask(chat(f"Where does my key for locker {word} hang?", user))
                measured.writes += 1
                if ids and answer.memory_status in SEARCHED:
                    given = await self._receipt(rest, answer.receipt, user)
                    measured.fresh += ids[0] in given
                    measured.stale += bool(given) and ids[0] not in given
                await asyncio.sleep(WRITE_PAUSE_SECONDS)

    async def _receipt(self, rest: Rest, receipt: str, user: str) -> str:
        """It names the memories that the chat was given; empty if there is none in time."""
        give_up_at = time.monotonic() + RECEIPT_SECONDS_MAX
        while time.monotonic() < give_up_at:
            if found := await rest.get(f"/v1/memory/receipts/{receipt}", user, may_be_missing=True):
                return str(found)
            await asyncio.sleep(0.1)
        self._failures["a searched chat left no receipt"] += 1
        return ""

    @asynccontextmanager
    async def _counting(self, measured: Measured) -> AsyncIterator[None]:
        port = self._rig.product.ports["metrics"]
        before = await samples(port, self._failures)
        yield
        after = await samples(port, self._failures)
        measured.late = sum(grown(before, after, name) for name in LATE)
        measured.turned_away = grown(before, after, "memproxy_recall_shed_total")
        measured.stages = stages(before or {}, after or {})


def stages(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Mean milliseconds in each stage of recall."""
    sums = {m[1]: name for name in after if (m := re.fullmatch(r'memproxy_recall_seconds_sum\{stage="(\w+)"\}', name))}
    return {
        stage: 1000 * ratio(grown(before, after, name), grown(before, after, name.replace("_sum{", "_count{")))
        for stage, name in sums.items()
    }


@dataclass
class Run:
    """One scenario: its name, the users that it needs with their memories, and how it is measured."""

    name: str
    users: dict[str, int]
    measured: Callable[[Bench], Awaitable[Measured]]


def scenarios(seconds: float) -> list[Run]:
    runs = []
    for size in (100, 1_000, 10_000):
        alone = partial(Bench.alone, user=f"{size}-0", chats=int(seconds * CHATS_A_SECOND))
        runs.append(Run(f"1 x {size:,}", {f"{size}-0": size}, alone))
    four = {f"1000-{number}": 1_000 for number in range(4)}
    writing = partial(Bench.together, clients=4, seconds=seconds, users=tuple(four), writes=True)
    runs.append(Run("4 x 1,000, writes", four, writing))
    crowd = dict.fromkeys([f"crowd-{number}" for number in range(CROWD)], CROWD_MEMORIES)
    for name in ("first", "again"):
        many = partial(Bench.together, clients=8, seconds=2 * seconds, users=tuple(crowd), warm=False)
        runs.append(Run(f"8 x crowd, {name}", crowd, many))
    return runs


async def measure(rig: Rig, runs: Sequence[Run], failures: Counter[str]) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    async with open_embedder(from_process(None, {})) as embedder:
        milvus = rig.product.store_uri
        await fill(milvus, embedder, {user: count for run in runs for user, count in run.users.items()})
        bench = Bench(rig, embedder, failures)
        for run in runs:
            found[run.name] = await run.measured(bench)
            console.print(f"{run.name}: {dict(found[run.name].statuses)}")
    return found


def figures(found: Mapping[str, Measured]) -> dict[str, float]:
    """Those of the bars whose scenario was asked for."""
    shown: dict[str, float] = {"failed chats": sum(one.statuses["failed"] for one in found.values())}
    if one := found.get("1 x 1,000"):
        beyond = one.added["p50"] - percentiles(one.embedding)["p50"]
        shown["1 x 1,000: added p50 beyond the embedding"] = beyond
        shown["1 x 1,000: added p99"] = one.added["p99"]
    if written := found.get("4 x 1,000, writes"):
        shown["writes: found at once"] = written.fresh
        shown["writes: stale notes"] = written.stale if written.fresh + written.stale else math.nan
    return shown


def main() -> int:
    parser = bench_parser("recall", __doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=5.0)
    parser.add_argument("scenario", nargs="*", help="any part of a scenario's name; default: all")
    options = parser.parse_args()
    report = Report("recall", BARS, options.json)
    wanted: list[str] = options.scenario
    runs = [run for run in scenarios(options.seconds) if not wanted or any(word in run.name for word in wanted)]
    with running_rig() as rig:
        found = uvloop.run(measure(rig, runs, report.failures))
    summaries: dict[str, Any] = {name: one.summary() for name, one in found.items()}
    sheet = Sheet("milliseconds of chats", COLUMNS, [one.row(name) for name, one in found.items()])
    return report.finish({"unit": "ms", "scenarios": summaries}, [sheet], figures(found))


if __name__ == "__main__":
    sys.exit(main())
