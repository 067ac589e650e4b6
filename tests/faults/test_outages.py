"""What the product needs is down for a while, one at a time: the store, the model that reads, the server that embeds.

No chat fails, learning catches up by itself, and no part keeps the outage in its memory. `--long`: a minute each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from chat_load import Talker, talking
from foreign_embeddings import running_foreign_embeddings
from kept_things import SUBJECTS, kept_thing
from milvus_lite_server import free_port
from milvus_standalone import TOKEN
from misbehaving_model import running_moody_model
from process_sizes import proportional_mb
from product import Product, eventually
from redis_server import RedisServer
from two_of_each import ON_SERVERS, TURN_LOGS, Store, counted, is_learnt_once, is_whole, running_two_of_each, store_of
from upstream import running_upstream

from memory.runtime.gc_freeze import SPARE_BYTES

USERS = tuple(f"keeper-{number}" for number in range(8))
PAUSE_SECONDS = 0.5
CHATS_BETWEEN = 3  # statements come with as many chats that state nothing
SHORT_SECONDS, LONG_SECONDS = 12.0, 60.0
WARM_SECONDS = 15.0  # of the same load, so that sizes are compared under it
RETRY_SECONDS_MAX = 4.0  # so that a test need not wait for the five minutes of a long outage
GROWTH_MAX = 0.1  # of the memory of filters, workers and API
FILTERS = 2
FULL = "1mb"  # less than a server needs without any key
PARTS = ("memproxy filter", "memproxy worker", "memproxy api")
TURNS_LOST, TURNS_WAITING = "memproxy_turns_lost_total", "memproxy_queue_turns"


@asynccontextmanager
async def running_store(store: Store) -> AsyncIterator[None]:
    """On the port and the files that it always had."""
    await asyncio.to_thread(store.start)
    try:
        yield
    finally:
        await asyncio.to_thread(store.kill)


NEEDED = ("store", "model", "embedding")


@dataclass
class Needed:
    """The servers that the product needs, each on a port that stays the same; it may be taken away and brought back."""

    folder: Path
    store: Store
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in NEEDED[1:]})
    running: dict[str, AsyncExitStack] = field(default_factory=dict)

    def _starting(self, name: str) -> AbstractAsyncContextManager[Any]:
        match name:
            case "store":
                return running_store(self.store)
            case "model":
                return running_moody_model(port=self.ports[name])
            case _:
                return running_foreign_embeddings(self.ports[name])

    async def start(self, name: str) -> None:
        self.running[name] = AsyncExitStack()
        await self.running[name].enter_async_context(self._starting(name))

    async def stop(self, name: str) -> None:
        await self.running.pop(name).aclose()

    def config(self) -> Path:
        model = {"model_role": "memory_extraction", "llm_model_name": "moody"}
        endpoint = {"address": "127.0.0.1", "port": self.ports["model"]}
        learn = {"reader": "model", "idle_seconds": 0.2, "retry_base_seconds": 0.5}
        settings = {
            "milvus_uri": self.store.uri,
            "external_models": [{**model, "llm_endpoint": endpoint, "llm_timeout_seconds": 5}],
            "memory": {
                "learn": {**learn, "retry_max_seconds": RETRY_SECONDS_MAX},
                "embedding": {"endpoint": f"http://127.0.0.1:{self.ports['embedding']}", "model": "foreign"},
            },
        }
        file = self.folder / "memproxy.yaml"
        file.write_text(yaml.safe_dump(settings))
        return file


@dataclass(frozen=True, slots=True)
class Outage:
    """How something goes away and comes back. `keeps_turns`: without it nobody knows which turns wait."""

    name: str
    gone: Callable[[], Awaitable[None]]
    back: Callable[[], Awaitable[None]]
    keeps_turns: bool = False


def full(redis: RedisServer) -> Outage:
    """Reads are answered, and no write is taken."""
    limited, unlimited = (partial(redis.set, "maxmemory", size) for size in (FULL, "0"))
    return Outage("full", partial(asyncio.to_thread, limited), partial(asyncio.to_thread, unlimited), keeps_turns=True)


@asynccontextmanager
async def running_product_that_needs(kind: str, folder: Path) -> AsyncIterator[tuple[Product, Sequence[Outage]]]:
    """With all that may happen to it."""
    needed, turn_log = Needed(folder, store_of(kind, folder)), kind.split()[0]
    outages = [Outage(name, partial(needed.stop, name), partial(needed.start, name)) for name in NEEDED]
    with running_upstream() as upstream:
        for name in NEEDED:
            await needed.start(name)
        try:
            started = running_two_of_each(turn_log, folder / "data", upstream=upstream.url, config=needed.config())
            product, redis = await asyncio.to_thread(started.__enter__)
            if redis is not None:
                gone, back = partial(asyncio.to_thread, redis.kill), partial(asyncio.to_thread, redis.start)
                outages.append(Outage("redis", gone, back, keeps_turns=True))
                outages.append(full(redis))
            try:
                yield product, outages
            finally:
                await asyncio.to_thread(started.__exit__, None, None, None)
        finally:
            for name in list(needed.running):
                await needed.stop(name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Where Redis holds the turn log, more can go away; without it, and with a Milvus server, with `--long`."""
    kinds = (*TURN_LOGS, pytest.param(ON_SERVERS, marks=pytest.mark.soak("a Milvus server keeps both cores busy")))
    metafunc.parametrize("kind", kinds if metafunc.config.getoption("--long") else ["redis"])


def talkers(prefix: str) -> list[Talker]:
    """Each user states all things one after the other, with other words between."""

    def says(number: int) -> str:
        turn, other = divmod(number, CHATS_BETWEEN + 1)
        if other or turn >= len(SUBJECTS):
            return f"What do I have in my cellar, asked for the {number}th time?"
        return kept_thing(turn)

    return [Talker(f"{prefix}-{user}", says, "s1") for user in USERS]


@pytest.mark.slow("something is down for some seconds, or a minute")
async def test_an_outage_fails_no_chat_is_caught_up_with_and_leaves_no_trace_in_memory(
    tmp_path: Path, kind: str, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = LONG_SECONDS if pytestconfig.getoption("--long") else SHORT_SECONDS
    if kind == ON_SERVERS:
        monkeypatch.setenv("MEMPROXY_MEMORY_MILVUS_TOKEN", TOKEN)
    async with running_product_that_needs(kind, tmp_path) as (product, outages):
        await asyncio.to_thread(eventually, lambda: is_whole(product), seconds=60)
        await chats_are_learnt(product, "warm", seconds=WARM_SECONDS)
        for outage in outages:
            before = sizes(product)
            await chats_are_learnt(product, outage.name, seconds=seconds, outage=outage)
            after = sizes(product)
            sized = {part: (size, after[part]) for part, size in before.items()}
            grown = {part: pair for part, pair in sized.items() if pair[1] > allowed_mb(part, pair[0])}
            assert grown == {}, f"{outage.name}: MB before and after"


def allowed_mb(part: str, before: float) -> float:
    """Of all processes of this part. Filters keep memory that is free again, so that its next use is fast."""
    kept_free = FILTERS * (SPARE_BYTES >> 20) if part == PARTS[0] else 0
    return before * (1 + GROWTH_MAX) + kept_free


async def chats_are_learnt(product: Product, name: str, *, seconds: float, outage: Outage | None = None) -> None:
    """Chats for so long, with something away during them; then all that was stated is learnt."""
    people = talkers(name)
    with talking(product, people, pause_seconds=PAUSE_SECONDS) as load:
        if outage is not None:
            await outage.gone()
        await asyncio.sleep(seconds)
        if outage is not None:
            if not outage.keeps_turns:
                await asyncio.to_thread(eventually, lambda: waiting_turns(product) > 0)
            await outage.back()
        await asyncio.sleep(1.0)
    assert load.failures == {}
    for user in {talker.user for talker in people}:
        said = {chat.said for chat in load.chats if chat.user == user}
        await asyncio.to_thread(is_learnt_once, product, user, said, stated=said & THINGS)
    assert counted(product, TURNS_LOST) == 0


def waiting_turns(product: Product) -> float:
    return sum(counted(product, f'{TURNS_WAITING}{{state="{state}"}}') for state in ("due", "leased"))


def sizes(product: Product) -> dict[str, float]:
    """MB of all processes of each part."""
    return {part: proportional_mb(product.children(part)) for part in PARTS}


THINGS = {kept_thing(number) for number in range(len(SUBJECTS))}
