"""What memory costs a chat that is searched: 1, 8 and 32 clients, users with 100 to 10,000 memories, 1,000 users.

`python bench/recall.py [SECONDS [SCENARIO...]]`; a scenario is named by any part of its name. Every question is a new
text, so that every one costs an embedding. Added time is against a bare Envoy under the same number of clients in the
same run; the embedding's own time is that of the same kind of question through the product's own embedder, opened in
this process, in turn with the chats. Bars: one client, 1,000 memories: added p50 at most the embedding's p50 + 4 ms,
p99 at most 40 ms; 8 clients: 95 % searched; 32 clients: none late, and whoever is turned away is turned away before an
embedding. Late is a search that was begun and did not end, be it that the deadline cut it off or that its embedding
took too long.

The 1,000 users come to a filter that knows none of them. Milvus Lite answers one query at a time, and needs 50 to
150 ms for each on so many rows, so that it could search for ten such chats a second; it is asked for many users' sets
at a time instead, and chats go on without memory until theirs is there. What counts is that the share grows to 1: in
the row "again" it is about the share of users who were loaded in the row "first".
"""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
import uvloop
from chats import Chats, connected, fill, new_questions
from rich.console import Console
from rig import Rig, percentiles, report, running_rig

from memory.app import open_embedder
from memory.config import from_process
from memory.ports import Embedder

ADDED_TO_EMBEDDING_MS_MAX, ADDED_P99_MS_MAX = 4.0, 40.0  # one client, 1,000 memories
SEARCHED_SHARE_MIN = 0.95  # 8 clients
IN_VAIN_SHARE_MAX = 0.01  # embeddings that no chat had anything of, against chats turned away, at 32 clients
BARE_SECONDS = 2.0
WARM_SECONDS_MAX = 60.0
WRITE_PAUSE_SECONDS = 0.2  # between two writes of one user
RECEIPT_SECONDS_MAX = 10.0  # they are written behind the chat
CROWD, CROWD_MEMORIES = 1_000, 20
SEARCHED = ("used", "empty")

console = Console(stderr=True)


@dataclass
class Measured:
    """Chats of one scenario: milliseconds and what `x-memory-status` said, and how long it all took."""

    seconds: float = 0.0
    bare: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    searched: list[float] = field(default_factory=list)
    embedding: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    fresh: int = 0  # searches right after a write that found it
    stale: int = 0  # and those that did not
    counters: dict[str, float] = field(default_factory=dict)

    def add(self, took: float, status: str) -> None:
        self.ours.append(took)
        self.statuses[status] += 1
        if status in SEARCHED:
            self.searched.append(took)

    def summary(self, *, clients: int, memories: int) -> dict[str, object]:
        bare, chats = percentiles(self.bare), percentiles(self.searched or [0.0])
        embedding = {"embedding": percentiles(self.embedding)} if self.embedding else {}
        return {
            "clients": clients,
            "memories": memories,
            "chats": len(self.ours),
            "chats_per_second": round(len(self.ours) / self.seconds, 1),
            "searched_per_second": round(len(self.searched) / self.seconds, 1),
            "searched_share": round(len(self.searched) / max(1, len(self.ours)), 4),
            "statuses": dict(self.statuses),
            "bare": bare,
            "searched": chats,
            "added": {p: round(chats[p] - bare[p], 3) for p in bare},
            **embedding,
            **({"writes": self.writes, "fresh": self.fresh, "stale": self.stale} if self.writes else {}),
            **self.counters,
            "embedded_in_vain": self.counters["questions_embedded"] - len(self.searched) - self.writes,
        }


# Measuring


class Bench:
    def __init__(self, rig: Rig, embedder: Embedder) -> None:
        self._rig = rig
        self._embedder = embedder
        self._questions = new_questions()

    async def warm(self, users: Sequence[str]) -> None:
        """Ask for each user until their memories are held by the filter: until answers come quickly."""
        async with connected(self._rig.product.ports["proxy"], 1) as [chats]:
            for user in users:
                quick = 0
                give_up_at = time.monotonic() + WARM_SECONDS_MAX
                while quick < 5:
                    took, status = await chats.ask(next(self._questions), user)
                    quick = quick + 1 if status in SEARCHED and took < 60 else 0
                    if time.monotonic() > give_up_at:
                        raise RuntimeError(f"no quick answers for {user} within {WARM_SECONDS_MAX:.0f} s: {status}")
                    if not quick:
                        await asyncio.sleep(0.05)

    async def alone(self, *, user: str, chats: int) -> Measured:
        """One client, taking turns between the bare Envoy, the product and the embedder alone."""
        await self.warm([user])
        measured = Measured()
        ports = (self._rig.bare_port, self._rig.product.ports["proxy"])
        async with connected(ports[0], 1) as [bare], connected(ports[1], 1) as [ours], self._counting(measured):
            for _ in range(chats):
                measured.bare.append((await bare.ask(next(self._questions), user))[0])
                measured.add(*await ours.ask(next(self._questions), user))
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

        async def ask_on(chats: Chats, until: float, note: Callable[[float, str], None]) -> None:
            while time.perf_counter() < until:
                note(*await chats.ask(next(self._questions), users[next(numbers) % len(users)]))

        async with connected(self._rig.bare_port, clients) as bare:
            until = time.perf_counter() + BARE_SECONDS
            await asyncio.gather(*(ask_on(chats, until, lambda took, _: measured.bare.append(took)) for chats in bare))
        numbers = itertools.count()
        async with connected(self._rig.product.ports["proxy"], clients) as ours, self._counting(measured):
            started = time.perf_counter()
            until = started + seconds
            writing = [self._write_on(user, until, measured) for user in users] if writes else []
            await asyncio.gather(*(ask_on(chats, until, measured.add) for chats in ours), *writing)
            measured.seconds = time.perf_counter() - started
        return measured

    async def _write_on(self, user: str, until: float, measured: Measured) -> None:
        """Store a memory, and ask for it at once: an answer whose note lacks it was made from a stale set.

        Only a chat that was given some memories can be stale: one that is turned away tells nothing.
        """
        url = f"http://127.0.0.1:{self._rig.product.ports['api']}/v1/memory"
        async with httpx.AsyncClient(timeout=30) as rest, connected(self._rig.product.ports["proxy"], 1) as [chats]:
            for number in itertools.count():
                if time.perf_counter() > until:
                    return
                word = f"{secrets.token_hex(4)}"
                memory = {"content": f"My key for locker {word} hangs in the hall, at hook {number}."}
                answer = await rest.post(url, params={"user_id": user}, json={"memories": [memory]})
                if answer.is_error:
                    raise RuntimeError(f"a memory could not be written: {answer.status_code} {answer.text}")
                _, status, receipt = await chats.exchange(f"Where does my key for locker {word} hang?", user)
                measured.writes += 1
                if status in SEARCHED:
                    told = await self._told(rest, receipt, user)
                    measured.fresh += answer.json()["ids"][0] in told
                    measured.stale += answer.json()["ids"][0] not in told
                await asyncio.sleep(WRITE_PAUSE_SECONDS)

    async def _told(self, rest: httpx.AsyncClient, receipt: str, user: str) -> str:
        """A chat's receipt, which names the memories that it was given."""
        url = f"http://127.0.0.1:{self._rig.product.ports['api']}/v1/memory/receipts/{receipt}"
        give_up_at = time.monotonic() + RECEIPT_SECONDS_MAX
        while (answer := await rest.get(url, params={"user_id": user})).status_code == 404:
            if time.monotonic() > give_up_at:
                raise RuntimeError("a searched chat left no receipt")
            await asyncio.sleep(0.1)
        answer.raise_for_status()
        return answer.text

    @asynccontextmanager
    async def _counting(self, measured: Measured) -> AsyncIterator[None]:
        before = counters(self._rig)
        yield
        after = counters(self._rig)
        grown = {name: after[name] - before.get(name, 0.0) for name in after}
        measured.counters = {
            "late": grown.get("memproxy_recall_late_total", 0.0)
            + reasons(grown).get('reason="embedder",status="unavailable"', 0.0),
            "shed": grown.get("memproxy_recall_shed_total", 0.0),
            "shed_by_the_embedder": grown.get("memproxy_embed_shed_total", 0.0),
            "questions_embedded": grown.get('memproxy_embed_seconds_count{lane="request"}', 0.0),
            "stages_mean_ms": stages(grown),  # type: ignore[dict-item]
            "reasons": reasons(grown),  # type: ignore[dict-item]
        }


def stages(grown: dict[str, float]) -> dict[str, float]:
    """Mean milliseconds in each stage of recall."""
    sums = {m[1]: name for name in grown if (m := re.fullmatch(r'memproxy_recall_seconds_sum\{stage="(\w+)"\}', name))}
    counts = {stage: grown[name.replace("_sum{", "_count{")] for stage, name in sums.items()}
    return {stage: round(1000 * grown[name] / counts[stage], 3) for stage, name in sums.items() if counts[stage]}


def reasons(grown: dict[str, float]) -> dict[str, float]:
    """Chats by status and reason."""
    found = ((re.fullmatch(r"memproxy_requests_total\{(.*)\}", name), count) for name, count in grown.items())
    return {match[1]: count for match, count in found if match and count}


def counters(rig: Rig) -> dict[str, float]:
    """Every sample of the product's metrics page."""
    page = httpx.get(f"http://127.0.0.1:{rig.product.ports['metrics']}/metrics", timeout=10).text
    samples = (line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in samples}


@dataclass
class Run:
    """One scenario: its name, the users that it needs with their memories, and how it is measured."""

    name: str
    clients: int
    users: dict[str, int]
    measured: Callable[[Bench], Awaitable[Measured]]


def scenarios(seconds: float) -> list[Run]:
    eight = {size: {f"{size}-{n}": size for n in range(8)} for size in (100, 1_000)}
    eight[10_000] = {"10000-0": 10_000}
    crowd = dict.fromkeys([f"crowd-{n}" for n in range(CROWD)], CROWD_MEMORIES)
    runs = []
    for size, users in eight.items():
        [first, *_] = users
        alone = partial(Bench.alone, user=first, chats=int(seconds * 60))
        runs.append(Run(f"1 x {size:,}", 1, {first: size}, alone))
        for clients in (8, 32):
            together = partial(Bench.together, clients=clients, seconds=seconds, users=tuple(users))
            runs.append(Run(f"{clients} x {size:,}", clients, users, together))
    four = dict(list(eight[1_000].items())[:4])
    writing = partial(Bench.together, clients=4, seconds=seconds, users=tuple(four), writes=True)
    runs.append(Run("4 x 1,000, writes", 4, four, writing))
    for name in ("first", "again"):
        many = partial(Bench.together, clients=8, seconds=2 * seconds, users=tuple(crowd), warm=False)
        runs.append(Run(f"8 x crowd, {name}", 8, crowd, many))
    return runs


async def measure(rig: Rig, runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    async with open_embedder(from_process(None, {})) as embedder:
        started = time.perf_counter()
        await fill(rig, embedder, {user: count for run in runs for user, count in run.users.items()})
        console.print(f"filled in {time.perf_counter() - started:.0f} s")
        bench = Bench(rig, embedder)
        for run in runs:
            measured = await run.measured(bench)
            found[run.name] = measured.summary(clients=run.clients, memories=max(run.users.values()))
            console.print(f"{run.name}: {measured.statuses}")
    return found


def bars(found: dict[str, dict[str, Any]]) -> dict[str, bool]:
    """What had to be shown, and whether it was."""
    shown = {}
    if one := found.get("1 x 1,000"):
        most = one["embedding"]["p50"] + ADDED_TO_EMBEDDING_MS_MAX
        shown[f"1 client: added p50 <= the embedding's + {ADDED_TO_EMBEDDING_MS_MAX:g} ms"] = (
            one["added"]["p50"] <= most
        )
        shown[f"1 client: added p99 <= {ADDED_P99_MS_MAX:g} ms"] = one["added"]["p99"] <= ADDED_P99_MS_MAX
    if eight := found.get("8 x 1,000"):
        shown[f"8 clients: searched >= {SEARCHED_SHARE_MIN:.0%}"] = eight["searched_share"] >= SEARCHED_SHARE_MIN
    if many := found.get("32 x 1,000"):
        shown["32 clients: none late"] = many["late"] == 0
        shown["32 clients: excess cost no embedding"] = many["embedded_in_vain"] <= IN_VAIN_SHARE_MAX * many["shed"]
    if written := found.get("4 x 1,000, writes"):
        shown["writes: none stale"] = written["stale"] == 0 and written["fresh"] > 0
    return shown


def main(seconds: float, wanted: Sequence[str]) -> int:
    runs = [run for run in scenarios(seconds) if not wanted or any(word in run.name for word in wanted)]
    with running_rig() as rig:
        found = uvloop.run(measure(rig, runs))
    shown = bars(found)
    columns = ["chats", "+p50", "+p95", "+p99", "embed", "found/s", "share", "late", "shed"]
    rows = [
        (
            name,
            *r["added"].values(),
            r.get("embedding", {}).get("p50", ""),
            str(round(r["searched_per_second"])),
            r["searched_share"],
            str(round(r["late"])),
            str(round(r["shed"])),
        )
        for name, r in found.items()
    ]
    report("recall", {"unit": "ms", "bars": shown, **found}, rows, columns)
    for bar, is_met in shown.items():
        console.print(f"{'met   ' if is_met else 'MISSED'} {bar}")
    return 0 if all(shown.values()) else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0, sys.argv[2:]))
