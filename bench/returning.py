"""Measures users on filters that never saw them, and crowds of users, with state on Redis and memories on Milvus.

`python bench/returning.py [--users N] [--memories N] [--asked N] [--seconds S]`: by default 1,000 users with 100
memories each, of whom 40 ask; at least 100 users, and 20 to half of them who ask. A real Milvus 2.3 server (`make
milvusserver`) and a real Redis server are started. Each of these users asked before; then all processes are killed with
`kill -9`. Half of them find their snapshot on Redis; that of the other half was evicted, so that the server is
searched. Later questions of the same users are what a warm filter takes. Then 8 clients, each with the next question as
soon as the last is answered, ask for S seconds as a few of the users, and as all of them: most of these were never
loaded.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from chats import chat, connected
from cold import COLUMNS, SETTLED_SECONDS, Measured, median
from load import DEADLINE_MS, Load
from memories import fill, new_questions
from redis import Redis
from report import Bar, Report, Sheet, bench_parser, ratio
from rig import Rig, ending_plainly, running_bare, running_upstream
from sides import COLUMNS as LOAD_COLUMNS
from sides import Compared

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
    Bar("8 clients, all users: p99 beyond the bare Envoy's", "ms", at_most=DEADLINE_MS),
    Bar("8 clients, all users: share with a note", at_least=0.99),
    Bar("8 clients: CPU of the filter, all users against a few", "times", at_most=1.2),
    Bar("failed chats", at_most=0),
)
CLIENTS, FEW_USERS = 8, 20
COLLECTION = "returning"
USERS_MIN = 5 * FEW_USERS  # or all users are no more than a few
ASKED_MIN = 20  # half of them by each way: fewer have no median
WRITES_AT_ONCE = 16  # of the filling
QUESTIONS = 5  # of each user; the second still meets caches that the first filled, and is left out
PAUSE_SECONDS = 0.1
SAVED_SECONDS = 5.0  # until the last snapshot is on Redis
SAID = new_questions()  # never the same text twice, so that each has to be embedded


async def filled(server: MilvusServer, users: list[str], memories: int) -> None:
    async with open_embedder(from_process(None, {})) as embedder:
        everybody = dict.fromkeys(users, memories)
        await fill(server.uri, embedder, everybody, COLLECTION, token=TOKEN, at_once=WRITES_AT_ONCE)


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


@dataclass
class Found:
    """First and later questions by what their users found, and loads by how many users asked."""

    returning: dict[str, Measured]
    crowds: dict[str, Compared]


async def crowds(rig: Rig, users: list[str], seconds: float, failures: Counter[str]) -> dict[str, Compared]:
    few = Load(rig, users[:FEW_USERS], failures, SAID)
    await few.warm()
    return {
        "few": await few.closed(f"{FEW_USERS} users", CLIENTS, seconds, auto_store=False),
        "all": await Load(rig, users, failures, SAID).closed(f"{len(users)} users", CLIENTS, seconds, auto_store=False),
    }


def measure(options: Namespace, failures: Counter[str]) -> Found:
    users, memories, asked = options.users, options.memories, options.asked
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
            evict(redis.port, chosen, evicted)
            product.start()
            time.sleep(SETTLED_SECONDS)
            returning = {
                "snapshot on Redis": asyncio.run(ask(product, bare_port, with_snapshot, failures)),
                "snapshot evicted": asyncio.run(ask(product, bare_port, evicted, failures)),
            }
            return Found(returning, asyncio.run(crowds(Rig(product, bare_port), names, options.seconds, failures)))
        finally:
            product.stop()


def evict(port: int, users: list[str], evicted: list[str]) -> None:
    """Of these users, all of whom have a snapshot on Redis, those of the `evicted` leave it."""
    with Redis(port=port) as client:
        kept = [UserKeys(user).snapshot for user in users]
        assert client.exists(*kept) == len(kept), "not every user's snapshot is on Redis"
        client.delete(*(UserKeys(user).snapshot for user in evicted))


def crowd_figures(few: Compared, everybody: Compared) -> dict[str, float]:
    one = everybody.summary()
    spent = [crowd.summary()["cpu_ms_a_chat"].get("filter", math.nan) for crowd in (everybody, few)]
    return {
        "8 clients, all users: p99 beyond the bare Envoy's": one["added"]["p99"],
        "8 clients, all users: share with a note": one["share_with_a_note"],
        "8 clients: CPU of the filter, all users against a few": ratio(*spent),
    }


def mistake_of(options: Namespace) -> str:
    """What would make figures that no bar is about; "" if nothing does."""
    users, asked = options.users, options.asked
    if users < USERS_MIN:
        return f"--users {users}: at least {USERS_MIN}, as the crowd of all is compared with {FEW_USERS} users"
    if asked < ASKED_MIN:
        return f"--asked {asked}: at least {ASKED_MIN}, half of them with a snapshot and half without"
    if asked > users // 2:
        return f"--asked {asked}: at most half of --users {users}, as most of a crowd must never have been loaded"
    if options.memories < 1 or options.seconds <= 0:
        return "--memories and --seconds: more than 0"
    return ""


def main() -> int:
    parser = bench_parser("returning", __doc__)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--memories", type=int, default=100, help="of each")
    parser.add_argument("--asked", type=int, default=40, help="users who ask")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each load of 8 clients")
    options = parser.parse_args()
    if mistake := mistake_of(options):
        parser.error(mistake)
    report = Report("returning", BARS, options.json)
    with ending_plainly():
        found = measure(options, report.failures)
    failed = sum(one.failed for one in found.returning.values())
    failed += sum(one.ours.statuses["failed"] for one in found.crowds.values())
    figures: dict[str, float] = crowd_figures(found.crowds["few"], found.crowds["all"]) | {"failed chats": failed}
    for name, one in found.returning.items():
        figures[f"{name}: share of first questions with a note"] = one.share
        figures[f"{name}: first p50 beyond later"] = round(median(one.first) - median(one.later), 1)
    sheets = [
        Sheet("milliseconds", COLUMNS, [one.row(name) for name, one in found.returning.items()]),
        Sheet(f"{CLIENTS} clients", LOAD_COLUMNS, [one.row() for one in found.crowds.values()]),
    ]
    result = {"unit": "ms", "users": options.users, "memories": options.memories}
    result |= {name: one.summary() for name, one in found.returning.items()}
    result |= {f"8 clients, {name}": one.summary() for name, one in found.crowds.items()}
    return report.finish(result, sheets, figures)


if __name__ == "__main__":
    sys.exit(main())
