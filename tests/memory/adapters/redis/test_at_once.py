"""What processes do at once, or between two steps of each other: nothing is lost, and nothing happens twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from functools import partial

import pytest
from redis.asyncio import Redis
from redis_parts import InterruptedClient, MortalClient
from redis_server import redis_server
from summarised_sessions import LATER, due, sessions_due
from turn_logs import ManualClock, Process, tell

from memory.adapters.redis import background as background_module
from memory.adapters.redis import log_keys, user_queue
from memory.adapters.redis.background import RedisBackground
from memory.adapters.redis.ledger import RedisUserLedger
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import NOTES, UserKeys
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.queue_replica import QueueReplica
from memory.adapters.redis.queue_store import COMMIT_IF_UNCHANGED, Planned, QueueStore
from memory.adapters.redis.queue_values import WaitingTurn
from memory.adapters.redis.shelves import UNLIMITED, NewValue, Shelf, ShelfLimits
from memory.adapters.redis.user_index import Look, Marked, UserIndex
from memory.adapters.redis.write_barrier import RedisWriteBarrier
from memory.errors import Unavailable

pytestmark = pytest.mark.full("what the adapter of Redis alone has; the contracts run there, too")


@pytest.fixture
async def owners(connected: Redis) -> AsyncIterator[RedisOwners]:
    async with RedisOwners(LogClient(connected)) as opened:
        yield opened


async def test_a_lock_that_is_taken_while_the_barrier_closes_is_given_back(
    connected: Redis, owners: RedisOwners
) -> None:
    clock = ManualClock()
    barrier = RedisWriteBarrier(LogClient(connected), owners, clock=clock)
    async with AsyncExitStack() as closed:
        client = InterruptedClient(
            connected, log_keys.LOCKED_USERS, lambda: closed.enter_async_context(barrier.closed(seconds=10))
        )
        ledger = RedisUserLedger(client, owners, clock=clock, wait_seconds=0.2)
        with pytest.raises(Unavailable):
            async with ledger.write("ann"):
                pytest.fail("nobody may write behind the barrier")
    async with ledger.write("ann"):
        pass


@pytest.mark.parametrize("number", [1, 2], ids=["while it is taken", "before it is released"])
async def test_whoever_becomes_alone_remembers_who_holds_a_lock(
    connected: Redis, owners: RedisOwners, number: int
) -> None:
    clock = ManualClock()
    barrier = RedisWriteBarrier(LogClient(connected), owners, clock=clock)
    async with AsyncExitStack() as stack:
        client = InterruptedClient(
            connected,
            log_keys.BARRIER_ALONE,
            lambda: stack.enter_async_context(barrier.alone(seconds=10)),
            number=number,
        )
        ledger = RedisUserLedger(client, owners, clock=clock)
        async with ledger.write("ann") as held:
            held.touch(["m"])
        assert list(await barrier.writers()) == ["ann"]


async def add(store: QueueStore, seq: int, user: str = "ann") -> None:
    turn = WaitingTurn(seq, f"t{seq}", "s1", "", opened_at=1.0, stage="ready", size=9)
    await store.change(user, lambda queue, _: Planned(None, user_queue.add(queue, turn)))


async def test_concurrent_changes_of_one_user_are_all_kept(client: LogClient) -> None:
    stores = [QueueStore(client) for _ in range(4)]
    await asyncio.gather(*(add(stores[seq % 4], seq) for seq in range(24)))
    assert [turn.seq for turn in (await stores[0].read("ann")).turns] == list(range(24))


async def test_a_commit_that_is_sent_again_is_done_once(client: LogClient) -> None:
    keys = UserKeys("ann")
    arguments: list[str | bytes | int | float] = [b"", "first", 4, "ZINCRBY", keys.turns, 1, "t1"]
    for _ in range(2):
        assert await client.run(COMMIT_IF_UNCHANGED, [keys.queue, keys.turns], arguments) == 1
    assert float(await client.call("ZSCORE", keys.turns, "t1")) == 1.0
    other = [b"", "second", *arguments[2:]]
    assert await client.run(COMMIT_IF_UNCHANGED, [keys.queue, keys.turns], other) == 0


async def test_a_replica_notices_a_server_that_lost_everything(client: LogClient) -> None:
    store, replica = QueueStore(client), QueueReplica(client, QueueStore(client))
    for seq in range(5):
        await add(store, seq)
    assert len(await replica.refreshed()) == 1
    redis_server().empty()
    assert list(await replica.refreshed()) == []
    await add(store, 1, user="bob")
    assert [summary.queue.user_id for summary in await replica.refreshed()] == ["bob"]


async def test_who_is_marked_while_somebody_looks_stays(client: LogClient) -> None:
    index = UserIndex(client, "a test")
    await client.calls([index.marking("seen", 1.0), index.marking("marked again", 2.0)])

    async def mark_meanwhile(page: Sequence[Marked]) -> list[Look[str]]:
        await client.calls([index.marking("marked again", 2.0)])
        return [Look(None, None) for _ in page]

    assert await index.search(mark_meanwhile, limit=9) == []

    async def keep(page: Sequence[Marked]) -> list[Look[str]]:
        return [Look(one.member, one.place) for one in page]

    assert await index.search(keep, limit=9) == ["marked again"]


async def test_who_is_held_back_is_looked_at_again_even_if_nobody_says_so(process: Process, client: LogClient) -> None:
    await tell(process.log, "t1")
    assert await due(process) == []
    await client.call("HSET", UserKeys("ann").queue, "q", b"")
    assert await due(process, now=LATER + 29) == []
    assert await sessions_due(process, now=LATER + 31) == [("ann", "s1")]


AT = 1_000.0
LIMITS = ShelfLimits(weight_max=3, seconds_max=100.0, mark_seconds=60.0)
PLACES = f"memproxy:{{{NOTES}}}:places"
VALUES = UserKeys("ann").shelf(NOTES)[0]


@pytest.fixture
def shelf(connected: Redis) -> Shelf:
    return Shelf(LogClient(connected), NOTES, LIMITS)


def a_value(name: str, value: bytes = b"v", *, at: float = AT) -> NewValue:
    return NewValue(name, value, at)


async def names(shelf: Shelf) -> list[bytes]:
    """Of the values at places, the newest first."""
    shelved, _ = await shelf.newest_of_all(below=UNLIMITED, limit=100)
    return [one.name for one in shelved]


@pytest.mark.parametrize("calls", range(5))
async def test_whoever_dies_between_two_steps_leaves_no_value_without_a_place(
    connected: Redis, shelf: Shelf, calls: int
) -> None:
    for name in ("a", "b", "c"):
        await shelf.put("ann", a_value(name))
    mortal = Shelf(MortalClient(connected, calls), NOTES, LIMITS)
    try:
        await mortal.put("ann", a_value("d"))
    except Unavailable:
        assert calls < 5
    stored = {one.name for one in await shelf.all("ann")}
    assert stored == set(await names(shelf))
    for number in range(3):  # what was left goes when its turn comes
        await shelf.put("bob", a_value(f"later{number}"))
    assert await shelf.all("ann") == []
    assert await connected.zcard(PLACES) == 3


async def test_a_value_whose_place_was_taken_while_it_was_written_gets_it_again(connected: Redis, shelf: Shelf) -> None:
    async def take() -> None:
        for number in range(4):
            await shelf.put("bob", a_value(f"other{number}"))
        assert await connected.zcard(PLACES) == 3

    slow = Shelf(InterruptedClient(connected, VALUES, take), NOTES, LIMITS)
    await slow.put("ann", a_value("slow"))
    assert b"slow" in await names(shelf)
    await shelf.put("bob", a_value("last"))
    assert await shelf.all("ann") == []


async def test_a_value_that_was_put_again_is_not_removed_in_place_of_the_earlier_one(shelf: Shelf) -> None:
    await shelf.put("ann", a_value("a"))
    seen = await shelf.all("ann")
    await shelf.put("ann", a_value("a", b"newer"))
    await shelf.remove("ann", seen)
    assert await shelf.find("ann", ["a"]) == [b"newer"]
    assert await names(shelf) == [b"a"]


async def test_bytes_are_counted_through_all_changes(connected: Redis, shelf: Shelf) -> None:
    for name, value in (("a", b"12345"), ("b", b"1"), ("a", b"123")):
        await shelf.put("ann", a_value(name, value))
    assert await shelf.replace("ann", "b", b"1", b"12")
    assert not await shelf.replace("ann", "b", b"1", b"1234567")
    assert await connected.get(UserKeys("ann").shelf(NOTES)[2]) == b"5"


class Written:
    """What was written, in order. A negative number fails."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    async def add(self, number: int) -> None:
        await asyncio.sleep(0)
        if number < 0:
            raise Unavailable("turn_log", "a test")
        self.numbers.append(number)


async def test_all_is_written_in_order_also_what_waits_on_exit_and_failures_stop_nothing() -> None:
    written = Written()
    async with RedisBackground() as background:
        for number in (1, -1, 2):
            background.post(partial(written.add, number))
        await background.written()
        assert written.numbers == [1, 2]
        background.post(partial(written.add, 3))
    assert written.numbers == [1, 2, 3]


async def test_what_is_posted_beyond_the_limit_or_after_the_end_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "WAITING_MAX", 3)
    written = Written()
    async with RedisBackground() as background:
        for number in range(9):
            background.post(partial(written.add, number))
    background.post(partial(written.add, 10))
    assert written.numbers == [0, 1, 2]


async def test_an_end_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "CLOSING_SECONDS", 0.05)
    async with RedisBackground() as background:
        background.post(partial(asyncio.sleep, 60))
        await asyncio.sleep(0)
