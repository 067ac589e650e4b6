"""What every store of idempotency keys has to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis_parts import REDIS_KINDS, shared_client

from memory.adapters.redis.idempotency_keys import RedisIdempotencyKeys
from memory.adapters.retention import CALL_SECONDS
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.idempotency_keys import SqliteIdempotencyKeys
from memory.ports.idempotency import IdempotencyKeys, KeyClaim

NOW = 1_750_000_000.0


@pytest.fixture(params=["sqlite", *REDIS_KINDS])
async def keys(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[IdempotencyKeys]:
    if request.param in REDIS_KINDS:
        async with shared_client(tmp_path, is_cluster=REDIS_KINDS[request.param]) as client:
            yield RedisIdempotencyKeys(client)
        return
    async with SqliteDatabase(tmp_path / "turns.sqlite") as database:
        yield SqliteIdempotencyKeys(database)


async def claim(keys: IdempotencyKeys, user: str = "ann", *, of: bytes = b"a", now: float = NOW) -> KeyClaim:
    return await keys.claim(user, "k", fingerprint=of, now=now)


async def test_the_first_claim_stands_and_gets_the_answer(keys: IdempotencyKeys) -> None:
    assert await claim(keys) == KeyClaim(b"a", NOW)
    assert await claim(keys, of=b"b", now=NOW + 1) == KeyClaim(b"a", NOW)
    await keys.answered("ann", "k", ["1", "2"])
    assert await claim(keys) == KeyClaim(b"a", NOW, ("1", "2"))


async def test_of_claims_at_the_same_time_one_stands(keys: IdempotencyKeys) -> None:
    found = await asyncio.gather(*(claim(keys, of=str(n).encode(), now=NOW + n) for n in range(9)))
    assert len(set(found)) == 1


async def test_each_user_has_keys_of_their_own_and_erasing_takes_them_all(keys: IdempotencyKeys) -> None:
    await claim(keys)
    await claim(keys, "bob", of=b"b")
    await keys.erase("ann")
    await keys.answered("ann", "k", ["1"])
    assert await claim(keys, of=b"c", now=NOW + 5) == KeyClaim(b"c", NOW + 5)
    assert await claim(keys, "bob", of=b"c") == KeyClaim(b"b", NOW)


async def test_a_key_is_free_again_after_its_time(keys: IdempotencyKeys) -> None:
    await claim(keys)
    assert (await claim(keys, of=b"b", now=NOW + CALL_SECONDS)).fingerprint == b"a"
    assert (await claim(keys, of=b"b", now=NOW + CALL_SECONDS + 1)).fingerprint == b"b"
