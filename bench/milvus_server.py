"""Measures a real Milvus 2.3 server with many users: searches of the same users alone and in a crowd, loads, writes.

`python bench/milvus_server.py [USERSxMEMORIES…]`, 10x100 and 1000x100 unless given: after each step so many users are
stored. Needs `make milvusserver`. Vectors are random. A search is what a chat waits for if the user's working set is
not loaded; times are milliseconds, of clients that each send the next search when one is answered.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

import numpy as np
from prometheus_client import CollectorRegistry
from report import Bar, Report, Sheet, bench_parser

from memory.adapters.milvus.store import MilvusStore, MilvusTimeouts
from memory.model import Change, ChangeKind, Memory, Vector
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from milvus_standalone import MilvusServer

STEPS = ("10x100", "1000x100")
DIMENSION = 384
CLIENTS = 8
SEARCHES = 400  # of all clients together
ROUNDS = 15
WRITERS = 32  # users written at a time
LIMIT = 50
START = 1_700_000_000.0
TIMEOUTS = MilvusTimeouts(search=10.0, read=50.0, write=50.0)
SETTLE_SECONDS = 5.0  # while the server still loads what was written
BARS = (Bar("search p99 of 8 clients", "ms", at_most=120), Bar("search, in the crowd / alone", "times", at_most=2))


async def main() -> int:
    parser = bench_parser("milvus_server", __doc__)
    parser.add_argument("steps", nargs="*", default=list(STEPS))
    options = parser.parse_args()
    report = Report("milvus_server", BARS, options.json)
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="memproxy-") as folder:
        server = MilvusServer(Path(folder))
        try:
            server.start()
            address = server.address("memories", DIMENSION)
            async with MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=TIMEOUTS) as store:
                users = 0
                for step in options.steps:
                    wanted, memories = map(int, step.split("x"))
                    seconds = await fill(store, range(users, wanted), memories)
                    users = max(users, wanted)
                    figures = await measured(store, users)
                    rows.append({"users": users, "memories": memories, "fill s": seconds, **figures})
        finally:
            server.kill()
    names = list(rows[0])
    sheet = Sheet("Milvus 2.3.5 standalone, ms", tuple(names), [tuple(row[name] for name in names) for row in rows])
    figures = {
        "search p99 of 8 clients": rows[-1]["search p99 of 8 clients"],
        "search, in the crowd / alone": round(rows[-1]["search"] / rows[0]["search"], 2),
    }
    return report.finish({"steps": rows}, [sheet], figures)


async def fill(store: MilvusStore, users: range, memories: int) -> float:
    began = time.perf_counter()
    await store.prepare()
    places = asyncio.Semaphore(WRITERS)

    async def one(user: int) -> None:
        async with places:
            rows = [memory(user, number) for number in range(memories)]
            changes = [Change(ChangeKind.CREATE, row) for row in rows]
            await store.apply(rows[0].user_id, changes, vectors(user, memories))

    await asyncio.gather(*(one(user) for user in users))
    took = round(time.perf_counter() - began, 1)
    await asyncio.sleep(SETTLE_SECONDS)
    return took


def memory(user: int, number: int) -> Memory:
    text = f"In week {number} I planted the quince tree behind the shed, since we wanted to be done before the rain."
    at = START + number
    return Memory(f"{user}-{number}", f"user-{user}", text, created_at=at, updated_at=at, said_at=at)


def vectors(seed: int, count: int) -> Vector:
    made = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


async def measured(store: MilvusStore, users: int) -> dict[str, float]:
    """The first ten users are asked in every step, so that only the others differ."""

    async def search(number: int, among: int) -> None:
        where = MemoryFilter(f"user-{number % among}")
        assert await store.search(where, vectors(number, 1)[0], limit=LIMIT)

    took = [await milliseconds(search(number, 10)) for number in range(3 * ROUNDS)]
    numbers, crowd = iter(range(SEARCHES)), []

    async def client() -> None:
        for number in numbers:
            one = await milliseconds(search(number * 7, users))
            crowd.append(one)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    places = [MemoryFilter(f"user-{number % 10}") for number in range(ROUNDS)]
    loads = [await milliseconds(store.load(where, limit=1_000)) for where in places]
    changes = [Change(ChangeKind.UPDATE, memory(0, 0))]
    writes = [await milliseconds(store.apply("user-0", changes, vectors(0, 1))) for _ in range(ROUNDS)]
    return {
        "search": round(statistics.median(took), 1),
        "search p50 of 8 clients": round(statistics.median(crowd), 1),
        "search p99 of 8 clients": round(sorted(crowd)[int(0.99 * len(crowd))], 1),
        "load": round(statistics.median(loads), 1),
        "write until seen": round(statistics.median(writes), 1),
    }


async def milliseconds(call: Awaitable[object]) -> float:
    began = time.perf_counter()
    await call
    return (time.perf_counter() - began) * 1_000


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
