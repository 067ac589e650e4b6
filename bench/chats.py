"""Chats over kept-alive connections, and users who have told so much that a search has work to do, for the benches.

Sentences are made of the lists here. Memories are written straight into the store, since a bench of recall has no time
to learn them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import numpy as np
from prometheus_client import CollectorRegistry
from rig import Rig

from memory.adapters.milvus import MilvusStore
from memory.adapters.milvus_connection import MilvusAddress
from memory.metrics import Metrics
from memory.model import Change, ChangeKind, Memory
from memory.ports import Embedder
from memory.settings import Settings

SENTENCES = 600  # distinct ones with a vector of their own; further memories say them again on another day
ROWS_AT_ONCE = 1_000

VERBS = "planted painted repaired sold bought borrowed measured washed photographed forgot".split()
THINGS = "quince tree,kitchen table,red bicycle,old piano,garden fence,blue tent,camera,coffee mill,boat,ladder".split(
    ","
)
PLACES = "behind the shed,in Lisbon,at my aunt's,near the station,in the attic,at the lake,in Graz,by the river".split(
    ","
)
WITH = "my sister,Tom,the neighbours,my flatmate,nobody,the new colleague,Aunt Rosa".split(",")


class Chats:
    """Chats over one kept-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, question: str, user: str) -> tuple[float, str]:
        """Milliseconds until the reply's last byte, and its memory status."""
        took, status, _ = await self.exchange(question, user)
        return took, status

    async def exchange(self, question: str, user: str) -> tuple[float, str, str]:
        """The same, and the receipt's id."""
        context = {"user_id": user, "session_id": question[-12:]}
        messages = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": question}]
        body = json.dumps({"model": "m", "messages": messages, "memory_context": context}).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        started = time.perf_counter()
        self._writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        await self._reader.readexactly(int(re.search(rb"content-length: (\d+)", answer)[1]))  # type: ignore[index]
        took = (time.perf_counter() - started) * 1000
        if not answer.startswith(b"http/1.1 200"):
            raise RuntimeError(f"answered {answer[:40]!r}")
        status = re.search(rb"x-memory-status: (\w+)", answer)
        receipt = re.search(rb"x-memory-receipt: (\S+)", answer)
        return took, status[1].decode() if status else "none", receipt[1].decode() if receipt else ""


@asynccontextmanager
async def connected(port: int, count: int) -> AsyncIterator[list[Chats]]:
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            clients.append(Chats(reader, writer))
        yield clients


def new_questions() -> Iterator[str]:
    """Never the same text twice, and always one that the memories have something to say to."""
    chance = random.Random(11)
    for number in itertools.count(1):
        did, thing, who = (chance.choice(words) for words in (VERBS, THINGS, WITH))
        yield f"Where was it that I {did} the {thing} with {who}, say {number} days ago?"


def sentences() -> list[str]:
    chance = random.Random(5)
    every = [
        f"I {verb} the {thing} {place} with {who}."
        for verb in VERBS
        for thing in THINGS
        for place in PLACES
        for who in WITH
    ]
    return chance.sample(every, SENTENCES)


# Filling


async def fill(rig: Rig, embedder: Embedder, users: dict[str, int]) -> None:
    """Memories straight into the store, as many as each user is to have."""
    said = sentences()
    vectors = np.asarray(await embedder.embed(said, is_urgent=False))
    chance = np.random.default_rng(3)
    settings = Settings().memory.milvus
    address = MilvusAddress(f"http://127.0.0.1:{rig.product.ports['milvus']}", settings.collection, settings.dimension)
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry())) as store:
        for user, count in users.items():
            for start in range(0, count, ROWS_AT_ONCE):
                numbers = np.arange(start, min(start + ROWS_AT_ONCE, count))
                picked = numbers * 7 % SENTENCES if count > SENTENCES else chance.choice(SENTENCES, len(numbers))
                near = vectors[picked] + chance.normal(0, 0.01, (len(numbers), vectors.shape[1]))
                unit = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)
                changes = [
                    Change(ChangeKind.CREATE, a_memory(user, int(number), said[pick]))
                    for number, pick in zip(numbers, picked, strict=True)
                ]
                await store.apply(user, changes, unit)


def a_memory(user: str, number: int, sentence: str) -> Memory:
    at = time.time() - 86_400.0 * (1 + number % 700) - number  # noqa: TID251 - a bench has a clock
    content = f"{sentence[:-1]} on day {number}."
    return Memory(id=f"{user}-{number}", user_id=user, content=content, created_at=at, updated_at=at, said_at=at)
