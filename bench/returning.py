"""Measures the first question of users on a filter that never saw them, with state on Redis and memories on Milvus.

`python bench/returning.py [--users N] [--memories N] [--asked N]`: by default 1,000 users with 100 memories each, of
whom 40 ask. A real Milvus 2.3 server (`make milvusserver`) and a real Redis server are started. Each of these users
asked before; then all processes are killed with `kill -9`. Half of them find their snapshot on Redis; that of the other
half was evicted, so that the server is searched. Later questions of the same users are what a warm filter takes.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from chats import chat, connected
from cold import COLUMNS, SETTLED_SECONDS, Measured, median
from memories import fill, new_questions
from redis import Redis
from report import Bar, Report, Sheet, bench_parser
from rig import running_bare, running_upstream

from memory.adapters.redis.log_keys import UserKeys
from memory.processes.composition import open_embedder
from memory.settings.loader import from_process

from milvus_standalone import TOKEN, MilvusServer  # isort: skip - on the path since `rig`
from product import Product  # isort: skip
from redis_server import own_redis_server  # isort: skip

BARS = (
    Bar("snapshot on Redis: share of first questions with a note", at_least=0.99),
    Bar("snapshot on Redis: first p50 beyond later", "ms", at_most=10.0),
    Bar("snapshot evicted: share of first questions with a note", at_least=0.99),
    Bar("snapshot evicted: first p50 beyond later", "ms", at_most=10.0),
    Bar("failed chats", at_most=0),
)
COLLECTION = "returning"
QUESTIONS = 5  # of each user; the second still meets caches that the first filled, and is left out
PAUSE_SECONDS = 0.1
SAVED_SECONDS = 5.0  # until the last snapshot is on Redis
SAID = new_questions()  # never the same text twice, so that each has to be embedded


async def filled(server: MilvusServer, users: list[str], memories: int) -> None:
    async with open_embedder(from_process(None, {})) as embedder:
        await fill(server.uri, embedder, dict.fromkeys(users, memories), COLLECTION, token=TOKEN)


async def ask(
    product: Product, bare_port: int, users: list[str], failures: Counter[str], *, questions: int = QUESTIONS
) -> Measured:
    measured = Measured()
    async with connected(product.ports["proxy"], 1, failures) as [ours], connected(bare_port, 1, failures) as [bare]:
        for user, number in itertools.product(users, range(questions)):
            body = chat(next(SAID), user, auto_store=False)
            measured.add(number, await ours.ask(body))
            plain = await bare.ask(body)
            if not plain.failure:
                measured.bare.append(plain.milliseconds)
            await asyncio.sleep(PAUSE_SECONDS)
    return measured


def measure(users: int, memories: int, asked: int, failures: Counter[str]) -> dict[str, Measured]:
    names = [f"returning-{number}" for number in range(users)]
    chosen = names[:: max(1, users // asked)][:asked]
    with_snapshot, evicted = chosen[::2], chosen[1::2]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memproxy-")))
        milvus, home = MilvusServer(folder / "milvus"), folder / "redis"
        stack.callback(milvus.kill)
        milvus.start()
        home.mkdir()
        redis = stack.enter_context(own_redis_server(home))
        upstream = stack.enter_context(running_upstream())
        bare_port = stack.enter_context(running_bare(upstream, folder))
        config = stack.enter_context(milvus.configured(folder, COLLECTION))
        words = ("--redis-url", redis.url)
        product = Product(folder / "data", *words, upstream=upstream, config=config, is_timed=True)
        asyncio.run(filled(milvus, names, memories))
        product.start()
        try:
            asyncio.run(ask(product, bare_port, chosen, Counter(), questions=2))
            time.sleep(SAVED_SECONDS)
            product.kill_everything()
            with Redis(port=redis.port) as client:
                kept = [UserKeys(user).snapshot for user in chosen]
                assert client.exists(*kept) == len(kept), "not every user's snapshot is on Redis"
                client.delete(*(UserKeys(user).snapshot for user in evicted))
            product.start()
            time.sleep(SETTLED_SECONDS)
            return {
                "snapshot on Redis": asyncio.run(ask(product, bare_port, with_snapshot, failures)),
                "snapshot evicted": asyncio.run(ask(product, bare_port, evicted, failures)),
            }
        finally:
            product.stop()


def main() -> int:
    parser = bench_parser("returning", __doc__)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--memories", type=int, default=100, help="of each")
    parser.add_argument("--asked", type=int, default=40, help="users who ask")
    options = parser.parse_args()
    report = Report("returning", BARS, options.json)
    found = measure(options.users, options.memories, options.asked, report.failures)
    figures: dict[str, float] = {"failed chats": sum(one.failed for one in found.values())}
    for name, one in found.items():
        figures[f"{name}: share of first questions with a note"] = one.share
        figures[f"{name}: first p50 beyond later"] = round(median(one.first) - median(one.later), 1)
    sheet = Sheet("milliseconds", COLUMNS, [one.row(name) for name, one in found.items()])
    result = {"unit": "ms", "users": options.users, "memories": options.memories}
    return report.finish(result | {name: one.summary() for name, one in found.items()}, [sheet], figures)


if __name__ == "__main__":
    sys.exit(main())
