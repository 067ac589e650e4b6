"""Synthetic users with many memories, and questions about them, for the benches. All sentences are made up.

Memories are written directly to the store, since a bench of chats has no time to learn them; the last one of a user may
be saved through REST, as in use.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from chats import Rest
from prometheus_client import CollectorRegistry

from memory.adapters.milvus.connection import MilvusAccess, MilvusAddress
from memory.adapters.milvus.store import MilvusStore, MilvusTimeouts
from memory.model import Change, ChangeKind, Memory
from memory.ports import Embedder
from memory.processes.composition import stored_origin
from memory.runtime.metrics import Metrics
from memory.settings.loader import from_process

SENTENCES = 2_000  # different ones; users with more memories say them again, on another day
ROWS_AT_ONCE = 1_000
DAYS = 700
PATIENT = MilvusTimeouts(search=10.0, read=60.0, write=120.0)  # Milvus Lite with 100,000 rows on a busy machine

LAST = "I sold the old sledge to the neighbours, since nobody used it."
SAVED_AT_ONCE = 16  # calls of REST

VERBS = "planted painted repaired sold bought borrowed measured washed photographed forgot".split()
THINGS = (
    "quince tree,kitchen table,red bicycle,old piano,garden fence,blue tent,camera,coffee mill,boat,ladder,"
    "record player,cello,sewing machine,greenhouse,stove,telescope,canoe,wardrobe,typewriter,motorbike"
).split(",")
PLACES = (
    "behind the shed,in Lisbon,at my aunt's house,near the station,in the attic,at the lake,in Graz,by the river,"
    "on the market square,in the cellar,at the harbour,on the balcony"
).split(",")
WITH = "my sister,Tom,the neighbours,my flatmate,nobody,the new colleague,Aunt Rosa,my cousin Ida,two friends".split(
    ","
)
BECAUSE = (
    "we wanted to be done before the rain came,it was cheaper than having somebody come,the old one had broken twice,"
    "my doctor told me to spend more time outside,there was a week left until the move,"
    "I had promised it to my daughter,the insurance asked for it,nobody else had the time that summer"
).split(",")


def sentences() -> list[str]:
    """About 100 characters each, the same in every run, no two alike."""
    chance = random.Random(5)
    made: dict[str, None] = {}
    while len(made) < SENTENCES:
        verb, thing, place, who, why = (chance.choice(words) for words in (VERBS, THINGS, PLACES, WITH, BECAUSE))
        made[f"I {verb} the {thing} {place} with {who}, since {why}."] = None
    return list(made)


def new_questions() -> Iterator[str]:
    """Never the same text twice, so that each costs an embedding, and always one that wants memory."""
    chance = random.Random(11)
    for number in itertools.count(1):
        verb, thing, who = (chance.choice(words) for words in (VERBS, THINGS, WITH))
        yield f"Where was it that I {verb} the {thing} with {who}, say {number} days ago?"


async def fill(
    milvus_uri: str,
    embedder: Embedder,
    users: Mapping[str, int],
    collection: str = "",
    *,
    token: str = "",
    at_once: int = 1,
) -> None:
    """Memories straight into the store, as many as each user is to have, for so many users at once: a server makes each
    write wait for a few tenths of a second.
    """
    said, product = sentences(), from_process(None, {})
    settings = product.memory
    # 7 and 2,000 share no factor: each once
    picked = {user: (np.arange(n) * 7 + place * 131) % SENTENCES for place, (user, n) in enumerate(users.items())}
    needed = np.unique(np.concatenate(list(picked.values())))
    vectors = np.zeros((SENTENCES, settings.milvus.dimension), dtype=np.float32)
    if needed.size:
        vectors[needed] = await embedder.embed([said[number] for number in needed], is_urgent=False)
    address = MilvusAddress(
        milvus_uri,
        collection or settings.milvus.collection,
        settings.milvus.dimension,
        origin=await stored_origin(product),
        access=MilvusAccess(token=token),
    )
    async with MilvusStore(address, metrics=Metrics(CollectorRegistry()), timeouts=PATIENT) as store:
        places = asyncio.Semaphore(at_once)

        async def fill_one(user: str, chosen: np.ndarray) -> None:
            async with places:
                for start in range(0, len(chosen), ROWS_AT_ONCE):
                    part = chosen[start : start + ROWS_AT_ONCE]
                    memories = (a_memory(user, number, said[one]) for number, one in enumerate(part, start))
                    await store.apply(user, [Change(ChangeKind.CREATE, one) for one in memories], vectors[part])

        async with asyncio.TaskGroup() as tasks:
            for user, chosen in picked.items():
                tasks.create_task(fill_one(user, chosen))


async def save_last(api: str, users: Sequence[str], failures: Counter[str]) -> None:
    """One memory more for each user, written by memproxy: soon there is a snapshot of all that `fill` wrote."""
    waiting = iter(users)

    async def save(rest: Rest) -> None:
        for user in waiting:
            await rest.add(user, [LAST])

    async with Rest(api, failures) as rest, asyncio.TaskGroup() as tasks:
        for _ in range(SAVED_AT_ONCE):
            tasks.create_task(save(rest))


def a_memory(user: str, number: int, sentence: str) -> Memory:
    at = time.time() - 86_400.0 * (1 + number % DAYS) - number  # noqa: TID251 - a bench has a clock
    content = f"{sentence[:-1]}, on day {number}." if number >= SENTENCES else sentence
    return Memory(id=f"{user}-{number}", user_id=user, content=content, created_at=at, updated_at=at, said_at=at)
