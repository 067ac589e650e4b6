"""Measures users on filters that never saw them, and crowds of users, with state on PostgreSQL and memories on Milvus.

`python bench/returning.py [--users N] [--memories N] [--asked N] [--seconds S]`: by default 1,000 users with 100
memories each, of whom 40 ask; at least 100 users, and 20 to half of them who ask. A real Milvus 2.3 server (`make
milvusserver`) and a real PostgreSQL server are started. The last memory of each user is saved through REST, so
that there is a snapshot of all, as in use; then all processes are killed with `kill -9`. Half of the users who ask find
their snapshot on PostgreSQL; that of the other half was evicted, so that the server is searched. Later questions of the
same users are what a warm filter takes.

Then 8 clients, each with the next question as soon as the last is answered, ask for S seconds as a few of the users,
and as all of them, most of whom this filter never saw: a share of the questions is the first of its user. At last,
after another `kill -9`, they ask as all of them while no user has a snapshot, so that Milvus is searched.
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
from typing import Any

import psycopg
from chats import chat, connected
from cold import COLUMNS, SETTLED_SECONDS, Measured, median
from load import DEADLINE_MS, Load
from memories import fill, new_questions, save_last
from report import Bar, Report, Sheet, bench_parser, ratio
from rig import Rig, ending_plainly, running_bare, running_upstream
from sides import COLUMNS as LOAD_COLUMNS
from sides import Compared

from memory.adapters.sql.statements import user_hash
from memory.processes.composition import open_embedder
from memory.settings.loader import from_process

from milvus_standalone import TOKEN, MilvusServer  # isort: skip - on the path since `rig`
from product import Product  # isort: skip
from postgres_server import PostgresServer, own_postgres_server  # isort: skip

BARS = (
    Bar("snapshot on PostgreSQL: share of first questions with a note", at_least=0.99),
    Bar("snapshot on PostgreSQL: first p50 beyond later", "ms", at_most=10.0),
    Bar("snapshot evicted: share of first questions with a note", at_least=0.99),
    Bar("snapshot evicted: first p50 beyond later", "ms", at_most=10.0),
    Bar("8 clients, all users: p99 beyond the bare Envoy's", "ms", at_most=DEADLINE_MS),
    Bar("8 clients, all users: share with a note", at_least=0.99),
    Bar("8 clients: CPU of the filter, all users against a few", "times", at_most=1.2),
    Bar("8 clients, no snapshots: p99 beyond the bare Envoy's", "ms", at_most=DEADLINE_MS),
    Bar("8 clients, no snapshots: share with a note", at_least=0.99),
    Bar("failed chats", at_most=0),
)
CLIENTS, FEW_USERS = 8, 20
COLLECTION = "returning"
USERS_MIN = 5 * FEW_USERS  # or all users are no more than a few
ASKED_MIN = 20  # half of them by each way: fewer have no median
MEMORIES_MIN = 2  # one of them is saved through REST
WRITES_AT_ONCE = 16  # of the filling
QUESTIONS = 5  # of each user; the second still meets caches that the first filled, and is left out
PAUSE_SECONDS = 0.1
SAVED_SECONDS_MAX = 300.0  # until every user's snapshot is on PostgreSQL
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
    """First and later questions by what their users found, and loads by who asked."""

    returning: dict[str, Measured]
    crowds: dict[str, Compared]


async def crowd(rig: Rig, name: str, users: list[str], seconds: float, failures: Counter[str]) -> Compared:
    return await Load(rig, users, failures, SAID).closed(name, CLIENTS, seconds, auto_store=False)


async def warm(rig: Rig, users: list[str], failures: Counter[str]) -> None:
    await Load(rig, users, failures, SAID).warm()


def measure(options: Namespace, failures: Counter[str]) -> Found:
    users, memories, asked = options.users, options.memories, options.asked
    names = [f"returning-{number}" for number in range(users)]
    chosen = names[:: max(1, users // asked)][:asked]
    with_snapshot, evicted = chosen[::2], chosen[1::2]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memproxy-")))
        milvus = MilvusServer(folder / "milvus")
        stack.callback(milvus.kill)
        milvus.start()
        postgres = stack.enter_context(own_postgres_server())
        upstream = stack.enter_context(running_upstream())
        bare_port = stack.enter_context(running_bare(upstream, folder))
        config = stack.enter_context(milvus.configured(folder, COLLECTION))
        words = ("--database-url", postgres.url)
        product = Product(folder / "data", *words, upstream=upstream, config=config, is_timed=True)
        asyncio.run(filled(milvus, names, memories - 1))
        product.start()
        try:
            asyncio.run(save_last(product.api, names, failures))
            await_snapshots(postgres, names)
            start_anew(product, postgres, evicted)
            returning = {
                "snapshot on PostgreSQL": asyncio.run(ask(product, bare_port, with_snapshot, failures)),
                "snapshot evicted": asyncio.run(ask(product, bare_port, evicted, failures)),
            }
            rig, few = Rig(product, bare_port), names[:FEW_USERS]
            asyncio.run(warm(rig, few, failures))
            crowds = {
                "few": asyncio.run(crowd(rig, f"{FEW_USERS} users", few, options.seconds, failures)),
                "all": asyncio.run(crowd(rig, f"{users} users", names, options.seconds, failures)),
            }
            start_anew(product, postgres, names)
            name = f"{users} users, no snapshots"
            crowds["no snapshots"] = asyncio.run(crowd(rig, name, names, options.seconds, failures))
            return Found(returning, crowds)
        finally:
            product.stop()


def start_anew(product: Product, postgres: PostgresServer, evicted: list[str]) -> None:
    """Processes that never saw a user; the snapshots of the `evicted` are gone."""
    product.kill_everything()
    with postgres.connect() as connection:
        hashes = [user_hash(user) for user in evicted]
        connection.execute("DELETE FROM snapshots WHERE user_hash = ANY(%s)", (hashes,))
    product.start()
    time.sleep(SETTLED_SECONDS)


def await_snapshots(postgres: PostgresServer, users: list[str]) -> None:
    """Until each of these users has one on PostgreSQL."""
    hashes, until = [user_hash(user) for user in users], time.monotonic() + SAVED_SECONDS_MAX
    with postgres.connect() as connection:
        while (there := found(connection, hashes)) < len(hashes):
            if time.monotonic() > until:
                sys.exit(f"only {there} of {len(hashes)} users have a snapshot after {SAVED_SECONDS_MAX:.0f} s")
            time.sleep(0.5)


def found(connection: psycopg.Connection[Any], hashes: list[str]) -> int:
    row = connection.execute("SELECT count(*) FROM snapshots WHERE user_hash = ANY(%s)", (hashes,)).fetchone()
    assert row is not None
    return int(row[0])


def crowd_figures(crowds: dict[str, Compared]) -> dict[str, float]:
    few, everybody = crowds["few"], crowds["all"]
    one, other = everybody.summary(), crowds["no snapshots"].summary()
    spent = [crowd.summary()["cpu_ms_a_chat"].get("filter", math.nan) for crowd in (everybody, few)]
    return {
        "8 clients, all users: p99 beyond the bare Envoy's": one["added"]["p99"],
        "8 clients, all users: share with a note": one["share_with_a_note"],
        "8 clients: CPU of the filter, all users against a few": ratio(*spent),
        "8 clients, no snapshots: p99 beyond the bare Envoy's": other["added"]["p99"],
        "8 clients, no snapshots: share with a note": other["share_with_a_note"],
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
    if options.memories < MEMORIES_MIN or options.seconds <= 0:
        return f"--memories: at least {MEMORIES_MIN}, and --seconds: more than 0"
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
    figures: dict[str, float] = crowd_figures(found.crowds) | {"failed chats": failed}
    for name, one in found.returning.items():
        figures[f"{name}: share of first questions with a note"] = one.share
        figures[f"{name}: first p50 beyond later"] = round(median(one.first) - median(one.later), 1)
    sheets = [
        Sheet("milliseconds", COLUMNS, [one.row(name) for name, one in found.returning.items()]),
        Sheet(f"{CLIENTS} clients", LOAD_COLUMNS, [one.row() for one in found.crowds.values()]),
    ]
    result = {"unit": "ms", "users": options.users, "memories": options.memories}
    result |= {name: one.summary() for name, one in found.returning.items()}
    for name, one in found.crowds.items():
        result[f"8 clients, {name}"] = one.summary() | {"first_questions": min(options.users, one.ours.asked)}
    return report.finish(result, sheets, figures)


if __name__ == "__main__":
    sys.exit(main())
