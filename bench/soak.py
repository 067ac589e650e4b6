"""Measures what minutes of mixed load leave behind: memory and file descriptors of every process of the product.

`python bench/soak.py [--minutes 10] [--clients 8] [--users 20] [--memories 300] [--filters 2] [--workers 2]
[--postgres] [--milvus-server]`; with `--postgres`, state is on a PostgreSQL server, otherwise in SQLite; with
`--milvus-server`, memories on a real Milvus server, otherwise in Milvus Lite. Their processes count as well. Plain and
streamed chats that search, that are skipped, without identity, with a tool, and statements, which are learnt beside
them: always the same ones, so that the store does not grow. Sizes are compared between the time after the warm-up and
the end: medians of resident memory, and the fewest descriptors, since connections come and go. A process that was
started again counts as one that died. Milvus, which holds in memory what is stored, is judged by its rows;
of PostgreSQL the tables are, with their indexes, by the recorded turns.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from chats import Chats, connected, samples
from databases import add_database, own_database, running_rig_on
from memories import fill, new_questions
from prometheus_client import CollectorRegistry
from report import Bar, Report, Sheet, bench_parser, ratio
from rich.progress import Progress
from rig import Rig, command_line, descendants, ending_plainly, part_of

from kept_things import SUBJECTS, kept_thing  # isort: skip - on the path since `rig`
from milvus_standalone import MilvusServer  # isort: skip
from process_sizes import ProcessSize, size_of  # isort: skip
from postgres_server import PostgresServer  # isort: skip

from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.ports import MemoryFilter
from memory.processes.composition import open_embedder
from memory.runtime.metrics import Metrics
from memory.settings import Settings
from memory.settings.loader import from_process

# KB in memory of what is stored. Milvus Lite has all rows, each write apart until it compacts some: 70 over a few
# minutes; the server 10. PostgreSQL: on disk, with receipts and notes until their limits are reached.
LITE_KB_A_ROW_MAX, SERVER_KB_A_ROW_MAX, POSTGRES_KB_A_TURN_MAX = 100.0, 25.0, 25.0
PROCESSES = "growth of resident memory, worst process that holds no stored data"
OF_MILVUS_LITE, OF_POSTGRES = "growth of Milvus Lite, for each new row", "tables on PostgreSQL, for each recorded turn"
OF_MILVUS_SERVER = "growth of the Milvus server, for each new row"
BARS = (
    Bar(PROCESSES, "%", at_most=5.0),
    Bar(OF_MILVUS_LITE, "KB", at_most=LITE_KB_A_ROW_MAX),
    Bar(OF_MILVUS_SERVER, "KB", at_most=SERVER_KB_A_ROW_MAX),
    Bar(OF_POSTGRES, "KB", at_most=POSTGRES_KB_A_TURN_MAX),
    Bar("growth of descriptors, worst process", at_most=0),
    Bar("failed chats", at_most=0),
    Bar("processes that died", at_most=0),
    Bar("turns lost or not learnt", at_most=0),
)
WARM_SHARE, WARM_SECONDS_MIN = 0.3, 40.0  # of the time, before sizes count
WINDOW_SHARE = 0.25  # of the time that counts: at its beginning, and at its end
SAMPLE_SECONDS = 3.0
COUNTS_EVERY = 5  # samples
TABLES_SHOWN = 12
MILVUS_LITE, MILVUS_SERVER, POSTGRES = "milvus", "milvus server", "postgres"
HOLDING_DATA = (MILVUS_LITE, MILVUS_SERVER, POSTGRES)
PAUSE_SECONDS = 0.4  # of each client between two chats
SESSION_CHATS = 6
DRAIN_SECONDS_MAX = 120.0
KINDS = {"searched": 30, "streamed": 15, "skipped": 20, "anonymous": 10, "tool": 10, "statement": 15}  # weights
TOOL = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "call-1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}

Sizes = dict[int, ProcessSize]


@dataclass(frozen=True, slots=True)
class Grown:
    """One process: after the warm-up and at the end."""

    part: str
    pid: int
    before: ProcessSize
    after: ProcessSize

    @property
    def percent(self) -> float:
        return 100 * (ratio(self.after.resident, self.before.resident) - 1)

    @property
    def descriptors(self) -> int:
        return self.after.descriptors - self.before.descriptors

    def row(self) -> tuple[object, ...]:
        sizes = (self.before.resident, self.after.resident, self.percent)
        shared = (self.before.proportional, self.after.proportional)
        return f"{self.part} {self.pid}", *sizes, *shared, self.before.descriptors, self.after.descriptors


class Talk:
    """What clients say. Each conversation has a session of its own, and each question is a new text."""

    def __init__(self, users: list[str]) -> None:
        self.users, self._questions = users, new_questions()
        self.kinds = Counter[str]()

    def long_answer(self) -> bytes:
        context = {"user_id": self.users[0], "session_id": "first"}
        return compact(self._chat("streamed", context, random.Random(0))[0])

    def bodies(self, client: int) -> Iterator[list[bytes]]:
        """Without end: the requests of one chat; a tool loop has two."""
        chance = random.Random(client)
        for number in itertools.count():
            kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
            context = {"user_id": chance.choice(self.users), "session_id": f"{client}-{number // SESSION_CHATS}"}
            self.kinds[kind] += 1
            yield [compact(body) for body in self._chat(kind, context, chance)]

    def _chat(self, kind: str, context: dict[str, str], chance: random.Random) -> list[dict[str, Any]]:
        texts = {"skipped": "Thank you very much!", "statement": kept_thing(chance.randrange(len(SUBJECTS)))}
        said = [{"role": "user", "content": texts.get(kind) or next(self._questions)}]
        body: dict[str, Any] = {"model": "m", "messages": said, "memory_context": context}
        match kind:
            case "anonymous":
                del body["memory_context"]
            case "streamed":
                body["stream"] = True
            case "tool":
                answered = [{"role": "assistant", "content": None, "tool_calls": [CALL]}]
                answered.append({"role": "tool", "tool_call_id": CALL["id"], "content": "It is noon."})
                return [{**body, "tools": [TOOL]}, {**body, "tools": [TOOL], "messages": [*said, *answered]}]
            case _:
                pass
        return [body]


def compact(body: Mapping[str, Any]) -> bytes:
    """As the upstream of benches recognises that it has to stream."""
    return json.dumps(body, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Count:
    """What is stored: rows of the store, of any kind and status, and recorded turns."""

    at: float
    rows: int
    turns: float


@dataclass(frozen=True, slots=True)
class Deployment:
    """`servers`: those that are no part of the product, by process id; `postgres`: one of them."""

    rig: Rig
    store: MilvusAddress
    servers: Mapping[int, str]
    postgres: PostgresServer | None


class Soak:
    def __init__(self, deployment: Deployment, talk: Talk, store: MilvusStore, failures: Counter[str]) -> None:
        self._rig, self._servers, self._talk, self._store = deployment.rig, deployment.servers, talk, store
        self._failures = failures
        self.statuses = Counter[str]()
        self.samples: list[tuple[float, Sizes]] = []
        self.counts: list[Count] = []

    async def run(self, clients: int, seconds: float) -> None:
        async with connected(self._rig.port, clients, self._failures) as every:
            # Envoy keeps the connections that it once needed: first it needs as many as it ever will.
            await asyncio.gather(*(chats.ask(self._talk.long_answer()) for chats in every))
            await self._all(every, until=time.monotonic() + seconds)

    async def _all(self, every: list[Chats], *, until: float) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sample(until))
            for number, chats in enumerate(every):
                tasks.create_task(self._talk_on(number, chats, until))

    async def _talk_on(self, client: int, chats: Chats, until: float) -> None:
        for bodies in self._talk.bodies(client):
            for body in bodies:
                answer = await chats.ask(body)
                self.statuses["failed" if answer.failure else answer.memory_status] += 1
            await asyncio.sleep(PAUSE_SECONDS)
            if time.monotonic() > until:
                return

    async def _sample(self, until: float) -> None:
        while time.monotonic() < until:
            self.samples.append((time.monotonic(), self.sizes()))
            if len(self.samples) % COUNTS_EVERY == 1:
                await self._count()
            await asyncio.sleep(SAMPLE_SECONDS)
        await self._count()

    async def _count(self) -> None:
        self.counts.append(Count(time.monotonic(), await self.rows_of_the_store(), await self.turns()))

    def sizes(self) -> Sizes:
        assert self._rig.product.process is not None
        root = self._rig.product.process.pid
        found = {pid: size_of(pid) for pid in [root, *descendants(root), *self._servers]}
        return {pid: size for pid, size in found.items() if size is not None}

    async def rows_of_the_store(self) -> int:
        """Of any kind and status."""
        places = [MemoryFilter(user, status=None, with_raw=True) for user in self._talk.users]
        return sum([await self._store.count(place) for place in places])

    async def turns(self) -> float:
        page = await samples(self._rig.product.ports["metrics"], self._failures) or {}
        return sum(value for name, value in page.items() if name.startswith("memproxy_turns_total"))

    async def left_over(self) -> float:
        """Turns that were lost, and that are not learnt after so long."""
        until, waiting = time.monotonic() + DRAIN_SECONDS_MAX, float("nan")
        while time.monotonic() < until:
            page = await samples(self._rig.product.ports["metrics"], self._failures) or {}
            lost = sum(value for name, value in page.items() if name.startswith("memproxy_turns_lost_total"))
            states = [f'memproxy_queue_turns{{state="{state}"}}' for state in ("opened", "due", "leased")]
            if states[1] in page:
                waiting = lost + sum(page.get(state, 0.0) for state in states)
                if waiting == lost:
                    break
            await asyncio.sleep(1.0)
        return waiting


def grown(
    taken: list[tuple[float, Sizes]], *, warm_seconds: float, servers: Mapping[int, str] | None = None
) -> tuple[list[Grown], int]:
    """Of each process that ran from the warm-up's end to the end; and how many ended or began between."""
    start, end = taken[0][0] + warm_seconds, taken[-1][0]
    window = (end - start) * WINDOW_SHARE
    first = [sizes for at, sizes in taken if start <= at <= start + window]
    last = [sizes for at, sizes in taken if at >= end - window]
    if not first or not last:
        raise ValueError("the run is too short for its warm-up")
    pids = set.intersection(*(set(sizes) for sizes in [*first, *last]))
    died = set.union(*(set(sizes) for sizes in [*first, *last])) - pids
    names = {pid: (servers or {}).get(pid) or part_of(command_line(pid)) for pid in pids}
    rows = [Grown(names[pid], pid, middle(first, pid), middle(last, pid)) for pid in sorted(pids)]
    return rows, len(died)


def kb_for_each(found: list[Grown], part: str, stored: Sequence[float]) -> float:
    """Growth of what holds data since the warm-up, by what was stored since (counts, in order). NaN of nothing."""
    more = sum(one.after.resident - one.before.resident for one in found if one.part == part)
    return ratio(max(0.0, 1024 * more), stored[-1] - stored[0])


def middle(taken: list[Sizes], pid: int) -> ProcessSize:
    """Medians of memory; the fewest descriptors."""
    sizes = [one[pid] for one in taken]
    return ProcessSize(
        median(size.resident for size in sizes),
        median(size.proportional for size in sizes),
        min(size.descriptors for size in sizes),
    )


async def measure(
    deployment: Deployment, options: argparse.Namespace, failures: Counter[str], progress: Progress
) -> tuple[Soak, float]:
    users, address = [f"soak-{number}" for number in range(options.users)], deployment.store
    stages = progress.add_task("filling", total=None)
    async with open_embedder(from_process(None, {})) as embedder:
        memories = dict.fromkeys(users, options.memories)
        await fill(address.uri, embedder, memories, address.collection, token=address.access.token)
    progress.update(stages, description=f"{options.minutes:g} minutes of chats")
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry())) as store:
        soak = Soak(deployment, Talk(users), store, failures)
        await soak.run(options.clients, 60 * options.minutes)
    return soak, await soak.left_over()


def held_by(postgres: PostgresServer) -> list[tuple[str, int, float]]:
    """Tables, with their rows and their MB on disk, largest first."""
    with postgres.connect() as connection:
        found = [
            (
                name,
                connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0],
                connection.execute("SELECT pg_total_relation_size(%s)", (name,)).fetchone()[0] / (1 << 20),
            )
            for name in postgres.tables()
        ]
    return sorted(found, key=lambda one: -one[2])


@contextmanager
def running(options: argparse.Namespace) -> Iterator[Deployment]:
    parts = ("--filters", str(options.filters), "--workers", str(options.workers))
    settings, servers, config, address = Settings().memory.milvus, dict[int, str](), None, None
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memproxy-")))
        postgres = stack.enter_context(own_database(is_postgres=options.postgres))
        if postgres:
            servers[postgres.pid] = POSTGRES
        if options.milvus_server:
            milvus = MilvusServer(home / "milvus")
            stack.callback(milvus.kill)
            milvus.start()
            servers[milvus.pid] = MILVUS_SERVER
            config = stack.enter_context(milvus.configured(home, settings.collection))
            address = milvus.address(settings.collection, settings.dimension)
        rig = stack.enter_context(running_rig_on(postgres, *parts, config=config))
        if address is None:
            address = MilvusAddress(rig.product.store_uri, settings.collection, settings.dimension)
        yield Deployment(rig, address, servers, postgres)


def main() -> int:
    parser = bench_parser("soak", __doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--memories", type=int, default=300, help="of each user, before anything is learnt")
    parser.add_argument("--filters", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    add_database(parser)
    parser.add_argument("--milvus-server", action="store_true", help="memories on a server instead of in Milvus Lite")
    options = parser.parse_args()
    warm_seconds = max(WARM_SECONDS_MIN, WARM_SHARE * 60 * options.minutes)
    if 60 * options.minutes < 2 * warm_seconds:
        parser.error(f"--minutes {options.minutes:g} is too short: the warm-up takes {warm_seconds:g} s")
    report = Report("soak", BARS, options.json)
    with ending_plainly(), running(options) as deployment:
        with Progress(transient=True) as progress:
            soak, left_over = uvloop.run(measure(deployment, options, report.failures, progress))
        servers = deployment.servers
        found, died = grown(soak.samples, warm_seconds=warm_seconds, servers=servers)  # command lines are there
        held = held_by(deployment.postgres) if deployment.postgres else []
    counts = [count for count in soak.counts if count.at >= soak.counts[0].at + warm_seconds]
    figures = {
        PROCESSES: max(one.percent for one in found if one.part not in HOLDING_DATA),
        "growth of descriptors, worst process": max(one.descriptors for one in found),
        "failed chats": soak.statuses["failed"],
        "processes that died": died,
        "turns lost or not learnt": left_over,
    }
    store = (OF_MILVUS_SERVER, MILVUS_SERVER) if options.milvus_server else (OF_MILVUS_LITE, MILVUS_LITE)
    figures[store[0]] = kb_for_each(found, store[1], [count.rows for count in counts])
    if held:
        figures[OF_POSTGRES] = 1024 * sum(size for *_, size in held) / max(1, soak.counts[-1].turns)
    began = soak.samples[0][0]
    columns = ("process", "resident, MB", "at the end", "growth, %", "proportional, MB", "at the end", "descriptors")
    sheets = [
        Sheet(f"after {warm_seconds:g} s and at the end", (*columns, "at the end"), [one.row() for one in found]),
        Sheet("chats by memory status", ("", "chats"), soak.statuses.most_common()),
        Sheet("stored", ("after, s", "rows", "turns"), [(round(n.at - began), n.rows, n.turns) for n in soak.counts]),
    ]
    if held:
        sheets.append(Sheet("what PostgreSQL holds", ("table", "rows", "MB"), held[:TABLES_SHOWN]))
    result = {
        "settings": {name: value for name, value in vars(options).items() if name != "json"},
        "statuses": dict(soak.statuses),
        "processes": [dict(zip(("process", *SIZES), one.row(), strict=True)) for one in found],
        "stored": [{"seconds": round(n.at - began, 1), "rows": n.rows, "turns": n.turns} for n in soak.counts],
        "postgres": [{"table": table, "rows": rows, "mb": round(size, 3)} for table, rows, size in held],
        "resident_mb": [
            {"seconds": round(at - began, 1), **{str(pid): round(size.resident, 1) for pid, size in sizes.items()}}
            for at, sizes in soak.samples
        ],
    }
    return report.finish(result, sheets, figures)


SIZES = (
    *("resident_mb", "resident_mb_at_the_end", "growth_percent", "proportional_mb", "proportional_mb_at_the_end"),
    *("descriptors", "descriptors_at_the_end"),
)


if __name__ == "__main__":
    sys.exit(main())
