"""Milvus Lite is killed while several processes write: what it acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from memory_rows import DIMENSION, memory, put
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry

from memory.adapters.milvus.store import MilvusStore
from memory.model import MemoryStatus
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics

WRITERS, ROWS = 6, 60
LONG = "a sentence that takes some room in the log, so that writes meet there; " * 40


@pytest.mark.full("kills and restarts a server")
async def test_what_writers_at_once_were_told_is_stored_survives_a_kill(tmp_path: Path, collection: str) -> None:
    server = MilvusLiteServer(tmp_path / "milvus")
    server.start()
    try:
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(opened(server, collection)) for _ in range(WRITERS)]
            await stores[0].prepare()
            await asyncio.gather(*(write(store, f"user-{number}") for number, store in enumerate(stores)))
        server.kill()
        server.start()
        async with opened(server, collection) as store:
            left = {user: await store.count(MemoryFilter(user, status=MemoryStatus.ACTIVE)) for user in users()}
        assert left == dict.fromkeys(users(), ROWS)
    finally:
        server.kill()


def opened(server: MilvusLiteServer, collection: str) -> MilvusStore:
    return MilvusStore(server.address(collection, DIMENSION), metrics=Metrics(CollectorRegistry()))


def users() -> list[str]:
    return [f"user-{number}" for number in range(WRITERS)]


async def write(store: MilvusStore, user: str) -> None:
    for number in range(ROWS):
        await put(store, memory(f"{user} {number}", user_id=user, content=f"{LONG}{user} {number}"))
