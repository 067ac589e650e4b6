"""A product with two filters and two workers on each turn log, for tests that restart, kill or stop its parts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import httpx
from milvus_lite_server import MilvusLiteServer
from milvus_standalone import MILVUS_SERVER, MilvusServer
from postgres_server import PostgresServer, own_postgres_server
from product import Product, eventually, running_product, sentences

TURN_LOGS = ("postgres", "sqlite")
ON_SERVERS = f"postgres and a {MILVUS_SERVER}"  # a turn log, as those above, and where memories are
MILVUS_LEASE_SECONDS = 5  # how long a server that was killed keeps its place
CAUGHT_UP_SECONDS_MAX = 60.0
CUT_OFF = "incomplete chunked read"  # an export ends so where the store fails, which may have just come back

Store: TypeAlias = MilvusLiteServer | MilvusServer


def store_of(kind: str, folder: Path) -> Store:
    """Not started. `kind`: one of `TURN_LOGS`, or `ON_SERVERS`."""
    if kind == ON_SERVERS:
        return MilvusServer(folder / "milvus", lease_seconds=MILVUS_LEASE_SECONDS)
    return MilvusLiteServer(folder / "store")


@contextmanager
def running_two_of_each(
    turn_log: str, data_dir: Path, *, upstream: str, config: Path | None = None
) -> Iterator[tuple[Product, PostgresServer | None]]:
    """With the server that holds the turn log, if one does."""
    with ExitStack() as stack:
        server = None
        arguments: tuple[str, ...] = ("--filters", "2", "--workers", "2")
        if turn_log == "postgres":
            server = stack.enter_context(own_postgres_server())
            arguments += ("--database-url", server.url)
        product = stack.enter_context(running_product(data_dir, *arguments, upstream=upstream, config=config))
        yield product, server


def is_whole(product: Product) -> bool:
    """Whether Envoy sees two filters in both roles."""
    with product.admin() as admin:
        page = admin.get("/stats", params={"filter": "membership_healthy"})
    return all(f"cluster.memory_{role}.membership_healthy: 2" in page.text for role in ("inject", "observe"))


@dataclass(frozen=True, slots=True)
class Kept:
    """What a user said in the turns of the record, each text with how often, and what stands in memory.

    `closed`: what was said in turns whose answer is there in full.
    """

    said: Counter[str] = field(default_factory=Counter)
    closed: Counter[str] = field(default_factory=Counter)
    memories: Counter[str] = field(default_factory=Counter)


def kept_of(product: Product, user: str) -> Kept:
    """From an export, the same whatever keeps the turns."""
    answer = httpx.get(f"{product.api}/v1/memory/export", params={"user_id": user}, timeout=60).raise_for_status()
    kept = Kept()
    for line in map(json.loads, answer.text.splitlines()):
        match line:
            case {"kind": "turn", "copy": {"turn": turn}}:
                said = turn["messages"][-1]["content"]
                kept.said[said] += 1
                if turn["status"] == "closed":
                    kept.closed[said] += 1
            case {"kind": "memory", "memory": memory}:
                kept.memories[memory["content"]] += 1
    return kept


def is_learnt_once(product: Product, user: str, said: Collection[str], *, stated: Collection[str]) -> None:
    """Wait until all that was stated is in memory, without a flush, which would ask for it: once, as each text in the
    record.
    """
    eventually(lambda: _is_all_there(product, user, said, stated), seconds=CAUGHT_UP_SECONDS_MAX, every=0.5)
    eventually(lambda: product.flush(user)["pending"] == 0, seconds=CAUGHT_UP_SECONDS_MAX)
    assert product.flush(user)["failed"] == 0
    kept = kept_of(product, user)
    assert kept.said == Counter(said), f"turns of {user} were lost or doubled"
    assert {memory: times for memory, times in kept.memories.items() if times > 1} == {}


def _is_all_there(product: Product, user: str, said: Collection[str], stated: Collection[str]) -> bool:
    try:
        kept = kept_of(product, user)
    except httpx.RemoteProtocolError as error:
        if CUT_OFF not in str(error):
            raise
        return False
    return kept.said.keys() >= set(said) and sentences(list(stated)) <= sentences(list(kept.memories))


def counted(product: Product, name: str) -> float:
    """The sum of the metrics page's lines that begin so."""
    page = httpx.get(f"http://127.0.0.1:{product.ports['metrics']}/metrics", timeout=30).text
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name))
