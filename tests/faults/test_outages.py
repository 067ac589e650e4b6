"""What the product needs is down or slow for a while, one at a time: store, turn log, what reads and what embeds.

No chat fails or waits, learning catches up by itself, and no part keeps the outage in its memory. While PostgreSQL is
down, users who were seen before get their notes. A minute each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from chat_load import Talker, chatting, talking
from chat_server import running_chat_server
from foreign_embeddings import running_foreign_embeddings
from kept_things import SUBJECTS, kept_thing
from milvus_standalone import TOKEN
from postgres_server import own_postgres_server
from process_sizes import proportional_mb
from product import Product, eventually, running_product
from scripted_model import scripted
from served_app import free_port
from slow_relay import SlowRelay, running_relay
from two_of_each import (
    ON_SERVERS,
    TURN_LOGS,
    Store,
    counted,
    is_learnt_once,
    is_whole,
    kept_of,
    running_two_of_each,
    store_of,
)
from upstream import running_upstream

from memory.runtime.gc_freeze import SPARE_BYTES

USERS = tuple(f"keeper-{number}" for number in range(8))
PAUSE_SECONDS = 0.5
CHATS_BETWEEN = 3  # statements come with as many chats that state nothing
OUTAGE_SECONDS = 60.0
WARM_SECONDS = 15.0  # of the same load, so that sizes are compared under it
RETRY_SECONDS_MAX = 4.0  # so that a test need not wait for the five minutes of a long outage
GROWTH_MAX = 0.1  # of the memory of filters, workers and API
FILTERS = 2
CHAT_SECONDS_MAX = 2.0  # Envoy goes on without us after one; who waited for a call or two would take longer
DELAY_SECONDS = 3.0  # in each direction: nobody is answered in time
FULL = "1mb"  # less than a server needs without any key
PARTS = ("memproxy filter", "memproxy worker", "memproxy api")
NOTED_MIN = 0.99  # of the questions in an outage of the turn log, of users who were seen before
SEEN_CHATS = 12  # with a note, before it: every filter had some of them
QUESTION = "What number has my locker at the pool?"
TURNS_LOST, TURNS_WAITING = "memproxy_turns_lost_total", "memproxy_queue_turns"


@asynccontextmanager
async def running_model(port: int) -> AsyncIterator[None]:
    async with running_chat_server(port) as server:
        server.says = scripted()
        yield


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
                return running_model(self.ports[name])
            case _:
                return running_foreign_embeddings(self.ports[name])

    async def start(self, name: str) -> None:
        self.running[name] = AsyncExitStack()
        await self.running[name].enter_async_context(self._starting(name))

    async def stop(self, name: str) -> None:
        await self.running.pop(name, AsyncExitStack()).aclose()  # it may be gone already

    def config(self, *, store_uri: str, database_port: int) -> Path:
        model = {"model_role": "memory_extraction", "llm_model_name": "scripted"}
        endpoint = {"address": "127.0.0.1", "port": self.ports["model"]}
        learn = {"reader": "model", "idle_seconds": 0.2}
        settings = {
            "milvus_uri": store_uri,
            **({"database_url": f"postgresql://127.0.0.1:{database_port}/postgres"} if database_port else {}),
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


def slow(name: str, relay: SlowRelay) -> Outage:
    """Everything is answered, far too late."""

    async def answer_after(seconds: float) -> None:
        relay.delay_seconds = seconds

    return Outage(f"slow-{name}", partial(answer_after, DELAY_SECONDS), partial(answer_after, 0.0), keeps_turns=True)


@asynccontextmanager
async def running_product_that_needs(kind: str, folder: Path) -> AsyncIterator[tuple[Product, Sequence[Outage]]]:
    """With all that may happen to it."""
    needed = Needed(folder, store_of(kind, folder))
    outages = [Outage(name, partial(needed.stop, name), partial(needed.start, name)) for name in NEEDED]
    async with AsyncExitStack() as stack:
        upstream = stack.enter_context(running_upstream())
        for name in NEEDED:
            await needed.start(name)
            stack.push_async_callback(needed.stop, name)
        relay = stack.enter_context(running_relay(needed.store.port))
        outages.append(slow("store", relay))
        database_port = 0
        if kind.split()[0] == "postgres":
            postgres = stack.enter_context(own_postgres_server())
            gone, back = partial(asyncio.to_thread, postgres.kill), partial(asyncio.to_thread, postgres.start)
            between = stack.enter_context(running_relay(postgres.port))
            database_port = between.port
            outages += [Outage("postgres", gone, back, keeps_turns=True), slow("postgres", between)]
        config = needed.config(store_uri=f"http://127.0.0.1:{relay.port}", database_port=database_port)
        words = ("--filters", "2", "--workers", "2")
        started = running_product(folder / "data", *words, upstream=upstream.url, config=config)
        product = await asyncio.to_thread(started.__enter__)
        stack.push_async_callback(asyncio.to_thread, started.__exit__, None, None, None)
        yield product, outages


def talkers(prefix: str) -> list[Talker]:
    """Each user states all things one after the other, with other words between."""

    def says(number: int) -> str:
        turn, other = divmod(number, CHATS_BETWEEN + 1)
        if other or turn >= len(SUBJECTS):
            return f"What do I have in my cellar, asked for the {number}th time?"
        return kept_thing(turn)

    return [Talker(f"{prefix}-{user}", says, "s1") for user in USERS]


@pytest.mark.soak("something is down for a minute, and sizes are compared")
@pytest.mark.parametrize("kind", [*TURN_LOGS, ON_SERVERS])
async def test_an_outage_fails_no_chat_is_caught_up_with_and_leaves_no_trace_in_memory(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == ON_SERVERS:
        monkeypatch.setenv("MEMPROXY_MEMORY_MILVUS_TOKEN", TOKEN)
    async with running_product_that_needs(kind, tmp_path) as (product, outages):
        await asyncio.to_thread(eventually, lambda: is_whole(product), seconds=60)
        await chats_are_learnt(product, "warm", seconds=WARM_SECONDS)
        for outage in outages:
            before = sizes(product)
            await chats_are_learnt(product, outage.name, seconds=OUTAGE_SECONDS, outage=outage)
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
    if outage is not None and outage.name.startswith("slow"):
        late = [chat for chat in load.chats if not chat.is_streamed and chat.ended - chat.began > CHAT_SECONDS_MAX]
        assert late == [], f"{name}: they waited"
    for user in {talker.user for talker in people}:
        said = {chat.said for chat in load.chats if chat.user == user}
        await asyncio.to_thread(is_learnt_once, product, user, said, stated=said & THINGS)
    assert counted(product, TURNS_LOST) == 0


@pytest.mark.soak("PostgreSQL is down for a minute, and what is late counts")
def test_users_who_were_seen_get_their_notes_while_postgres_is_down(tmp_path: Path) -> None:
    with ExitStack() as stack:
        upstream = stack.enter_context(running_upstream())
        product, postgres = stack.enter_context(running_two_of_each("postgres", tmp_path, upstream=upstream.url))
        assert postgres is not None
        eventually(lambda: is_whole(product))
        for user in USERS:
            product.chat("My locker at the pool has the number 117.", user)
            assert product.flush(user)["pending"] == 0
            for _ in range(SEEN_CHATS):
                assert product.ask(QUESTION, user).headers["x-memory-status"] == "used"
        postgres.kill()
        with chatting(product, QUESTION, USERS, pause_seconds=PAUSE_SECONDS) as load:
            time.sleep(OUTAGE_SECONDS)
        postgres.start()
        for user in USERS:
            asked = SEEN_CHATS + sum(chat.user == user for chat in load.chats)
            eventually(lambda user=user, asked=asked: kept_of(product, user).closed[QUESTION] == asked)
    assert load.failures == {}
    assert load.memory_of()["used"] >= NOTED_MIN * len(load.chats), load.memory_of()


def waiting_turns(product: Product) -> float:
    return sum(counted(product, f'{TURNS_WAITING}{{state="{state}"}}') for state in ("due", "leased"))


def sizes(product: Product) -> dict[str, float]:
    """MB of all processes of each part."""
    return {part: proportional_mb(product.children(part)) for part in PARTS}


THINGS = {kept_thing(number) for number in range(len(SUBJECTS))}
