"""States of long conversations: found by the newest key that has one, by their own user alone. On every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from redis_parts import shared_client

from memory.adapters import retention
from memory.adapters.redis import compacted_states as redis_states
from memory.adapters.redis.compacted_states import RedisCompactedStates
from memory.adapters.sqlite import compacted_states as sqlite_states
from memory.adapters.sqlite.compacted_states import SqliteCompactedStates
from memory.adapters.sqlite.database import SqliteDatabase
from memory.model import CompactedState, StateItem, StateItemKind, Stretch
from memory.ports import CompactedStates

NOW = 1_765_800_000.0
Opener = Callable[[Path], AbstractAsyncContextManager[CompactedStates]]


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[CompactedStates]:
    async with SqliteDatabase(folder / "turns.sqlite") as database:
        yield SqliteCompactedStates(database)


@asynccontextmanager
async def redis(folder: Path, *, is_cluster: bool = False) -> AsyncIterator[CompactedStates]:
    async with shared_client(folder, is_cluster=is_cluster) as client:
        yield RedisCompactedStates(client)


ADAPTERS: dict[str, Opener] = {  # one line per adapter
    "sqlite": sqlite,
    "redis": redis,
    "redis cluster": partial(redis, is_cluster=True),
}


@pytest.fixture(params=sorted(ADAPTERS))
def opened(request: pytest.FixtureRequest) -> Opener:
    return ADAPTERS[request.param]


@pytest.fixture
async def states(opened: Opener, tmp_path: Path) -> AsyncIterator[CompactedStates]:
    async with opened(tmp_path) as found:
        yield found


def state(cut: int, text: str = "what was said") -> CompactedState:
    item = StateItem(StateItemKind.DECISION, "We take the blue one.", 0.75)
    return CompactedState(cut, (Stretch("colours", (item,)),), text, 12, 300)


async def test_the_newest_key_with_a_state_counts(states: CompactedStates) -> None:
    await states.keep("ann", "k1", state(3), made_at=NOW)
    await states.keep("ann", "k7", state(9), made_at=NOW)
    assert await states.find("ann", ["k1", "k2"]) == ("k1", state(3))
    assert await states.find("ann", ["k1", "k7", "k8"]) == ("k7", state(9))
    assert await states.find("ann", ["k8"]) is None
    assert await states.find("ann", []) is None


async def test_a_state_is_found_far_back_in_a_long_conversation(states: CompactedStates) -> None:
    await states.keep("ann", "k5", state(3), made_at=NOW)
    assert await states.find("ann", [f"k{number}" for number in range(500)]) == ("k5", state(3))


async def test_another_user_s_state_is_not_found(states: CompactedStates) -> None:
    await states.keep("ann", "k1", state(3), made_at=NOW)
    assert await states.find("bob", ["k1"]) is None


async def test_the_first_state_of_a_key_stays(states: CompactedStates) -> None:
    await states.keep("ann", "k1", state(3), made_at=NOW)
    await states.keep("ann", "k1", state(3, "in other words"), made_at=NOW + 1)
    assert await states.find("ann", ["k1"]) == ("k1", state(3))
    await states.drop("ann", now=NOW + 2)
    await states.keep("ann", "k1", state(3, "in other words"), made_at=NOW + 3)
    assert await states.find("ann", ["k1"]) == ("k1", state(3, "in other words"))


async def test_every_process_finds_it_and_so_does_a_later_one(opened: Opener, tmp_path: Path) -> None:
    async with opened(tmp_path) as one, opened(tmp_path) as two:
        await one.keep("ann", "k1", state(3), made_at=NOW)
        assert await two.find("ann", ["k1"]) == ("k1", state(3))
    async with opened(tmp_path) as later:
        assert await later.find("ann", ["k1"]) == ("k1", state(3))


async def test_dropping_deletes_what_is_there_and_what_is_in_the_making(states: CompactedStates) -> None:
    await states.keep("ann", "k1", state(3), made_at=NOW)
    await states.keep("bob", "k1", state(3), made_at=NOW)
    await states.drop("ann", now=NOW + 5)
    assert await states.find("ann", ["k1"]) is None
    assert await states.find("bob", ["k1"]) is not None
    await states.keep("ann", "k1", state(3), made_at=NOW + 4)
    assert await states.find("ann", ["k1"]) is None, "its making began before the states were dropped"
    await states.keep("ann", "k1", state(3), made_at=NOW + 6)
    assert await states.find("ann", ["k1"]) is not None


async def test_the_oldest_states_of_a_user_go_first(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_states, redis_states):
        monkeypatch.setattr(module, "USER_STATES_MAX", 3)
    async with opened(tmp_path) as states:
        await kept_in_order(states)


async def kept_in_order(states: CompactedStates) -> None:
    await states.keep("bob", "b", state(3), made_at=NOW)
    for number in range(5):
        await states.keep("ann", f"k{number}", state(number), made_at=NOW + number)
    found = [await states.find("ann", [f"k{number}"]) is not None for number in range(5)]
    assert found == [False, False, True, True, True]
    assert await states.find("bob", ["b"]) is not None


async def test_states_expire_and_one_that_is_too_large_is_not_kept(states: CompactedStates) -> None:
    await states.keep("ann", "old", state(3), made_at=NOW)
    await states.keep("bob", "new", state(3), made_at=NOW + retention.STATE_SECONDS_MAX + 1)
    assert await states.find("ann", ["old"]) is None
    await states.keep("ann", "large", state(3, "x" * retention.STATE_BYTES_MAX), made_at=NOW)
    assert await states.find("ann", ["large"]) is None
