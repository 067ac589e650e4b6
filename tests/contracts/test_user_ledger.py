"""The user ledger: one writer per user, and readers who can tell what they missed. On every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from turn_logs import Deployment, Process

from memory.errors import Conflict, Unavailable
from memory.ports import LedgerWrite, UserLedger


@pytest.fixture
def ledger(process: Process) -> UserLedger:
    return process.ledger


async def settled(ledger: UserLedger) -> int:
    """Ann's revision, inside of no lock."""
    revision = await ledger.revision("ann")
    assert revision.is_settled
    return revision.number


async def touch(ledger: UserLedger, *memory_ids: str, user: str = "ann") -> int:
    """Write these memories; the revision after it."""
    async with ledger.write(user) as held:
        held.touch(memory_ids)
    return (await ledger.revision(user)).number


@asynccontextmanager
async def lost(deployment: Deployment) -> AsyncIterator[LedgerWrite]:
    """A lock of ann's that is held for so long that others take it over; its holder is told so in the end."""
    async with deployment.start() as slow:
        lock = slow.ledger.write("ann")
        held = await lock.__aenter__()
        deployment.clock.now += 31
        yield held
        with pytest.raises(Conflict):
            await lock.__aexit__(None, None, None)


async def test_the_revision_is_odd_inside_and_even_and_higher_after(ledger: UserLedger) -> None:
    before = await settled(ledger)
    assert await ledger.changed_since("ann", before) == frozenset()
    async with ledger.write("ann") as held:
        held.touch(())  # also without ids
        inside = await ledger.revision("ann")
        assert (inside.is_settled, (await ledger.revision("bob")).is_settled) == (False, True)
    assert before < inside.number < await settled(ledger)


async def test_a_lock_under_which_nothing_was_touched_returns_the_revision(ledger: UserLedger) -> None:
    """All holders have the same odd number: a reader who saw it asks what changed since the even one below it."""
    before = await touch(ledger, "a")
    for _ in range(2):
        async with ledger.write("ann") as held:
            assert (await ledger.revision("ann")).number == before + 1
            await held.renew()
            await held.forget([], raw_ids=["raw words"])
            assert await held.forgotten(["raw words"]) == {"raw words"}
    with pytest.raises(ZeroDivisionError):
        async with ledger.write("ann"):
            raise ZeroDivisionError
    assert await settled(ledger) == before
    assert await ledger.changed_since("ann", before) == frozenset()
    async with ledger.write("ann") as held:
        assert (await ledger.revision("ann")).number == before + 1
        held.touch(["b"])
    assert await settled(ledger) == before + 2
    assert await ledger.changed_since("ann", before) == {"b"}


@pytest.mark.parametrize("is_dead", [False, True])
async def test_a_lost_revision_never_comes_back(deployment: Deployment, ledger: UserLedger, *, is_dead: bool) -> None:
    """The lock of one that died, or was slow, is taken over, and nothing is touched."""
    before = await touch(ledger, "a")
    async with deployment.start() as mortal:
        lock = mortal.ledger.write("ann")
        await lock.__aenter__()
        if not is_dead:
            deployment.clock.now += 31
            async with ledger.write("ann"):
                pass
    async with ledger.write("ann"):
        pass
    assert await settled(ledger) > before
    assert await ledger.changed_since("ann", before) == frozenset()  # nothing was announced
    with pytest.raises((Conflict, Unavailable)):
        await lock.__aexit__(None, None, None)


async def test_readers_learn_what_changed_since_they_looked(ledger: UserLedger) -> None:
    first = await touch(ledger, "a", "b")
    second = await touch(ledger, "b", "c")
    await touch(ledger, "foreign", user="bob")
    assert await ledger.changed_since("ann", first) == {"b", "c"}
    assert await ledger.changed_since("ann", second) == frozenset()
    assert await ledger.changed_since("ann", 0) == {"a", "b", "c"}
    assert await ledger.changed_since("ann", second + 2) is None  # from another deployment
    with suppress(ZeroDivisionError):
        async with ledger.write("ann") as held:
            held.touch(["half"])
            raise ZeroDivisionError
    assert (await ledger.revision("ann")).is_settled
    assert await ledger.changed_since("ann", second) == {"half"}


async def test_a_reader_too_far_behind_must_load_everything(ledger: UserLedger) -> None:
    start = await touch(ledger, "first")
    for number in range(11):
        last = await touch(ledger, *(f"m{number}-{n}" for n in range(100)))
    assert await ledger.changed_since("ann", start) is None
    recent = await touch(ledger, "newest")
    assert await ledger.changed_since("ann", last) == {"newest"}
    await touch(ledger, *(f"many{n}" for n in range(5_000)))
    assert await ledger.changed_since("ann", recent) is None


async def test_writers_of_one_user_take_turns_and_lose_no_update(process: Process, other: Process) -> None:
    value = 0

    async def add_one(ledger: UserLedger) -> None:
        nonlocal value
        async with ledger.write("ann") as held:
            held.touch(["m"])
            read = value
            await asyncio.sleep(0)
            value = read + 1

    await asyncio.gather(*(add_one((process, other)[n % 2].ledger) for n in range(8)))
    assert (value, await settled(process.ledger)) == (8, 16)


async def test_a_lock_held_too_long_is_repaired_and_that_is_told(deployment: Deployment, ledger: UserLedger) -> None:
    before = await touch(ledger, "a")
    async with lost(deployment):
        async with ledger.write("ann"):
            repaired = await ledger.revision("ann")
            assert not repaired.is_settled
            assert repaired.number > before + 1
        after = await settled(ledger)
        for since in (before, after):
            assert await ledger.changed_since("ann", since) == frozenset()  # it had announced nothing
    await settled(ledger)
    assert await ledger.changed_since("ann", after) is None  # the slow one wrote after all


async def test_what_a_dead_writer_had_announced_is_known_after_it(deployment: Deployment, process: Process) -> None:
    """Also if it died twice: a reader misses nothing, and need not load what nobody touched."""
    ledger = process.ledger
    before = await touch(ledger, "a")
    for number, ending in enumerate((process.log.recover, None)):
        async with deployment.start() as mortal:
            lock = mortal.ledger.write("ann")
            held = await lock.__aenter__()
            for name in ("m", "n"):
                held.touch([f"{name}{number}"])
                await held.renew()
            held.touch([f"never sent {number}"])
            known = await ledger.changed_since("ann", before)
            assert known is not None
            assert f"m{number}" not in known
        if ending is not None:
            await ending()
    async with ledger.write("ann"):  # takes the lock of the dead, and touches nothing
        pass
    await settled(ledger)
    assert await ledger.changed_since("ann", before) == {"m0", "n0", "m1", "n1"}


async def test_recovery_frees_locks_of_the_dead_and_of_the_slow(deployment: Deployment, process: Process) -> None:
    ledger = process.ledger
    before = await touch(ledger, "a")
    async with deployment.start() as mortal:
        lock = mortal.ledger.write("ann")
        await lock.__aenter__()
        await process.log.recover()
        assert not (await ledger.revision("ann")).is_settled  # it lives
    await process.log.recover()
    assert await settled(ledger) > before
    assert await ledger.changed_since("ann", before) == frozenset()
    with pytest.raises(Unavailable):  # the dead say nothing more
        await lock.__aexit__(None, None, None)
    async with lost(deployment):
        await process.log.recover()
        await settled(ledger)


async def test_forgotten_ids_are_remembered_per_user_and_count_as_touched(ledger: UserLedger) -> None:
    before = await touch(ledger, "a")
    async with ledger.write("ann") as held:
        assert await held.forgotten(["a", "b"]) == frozenset()
        await held.forget(["a", "it's \u4f60"])
        await held.forget(["a"])
        assert await held.forgotten(["a", "b", "it's \u4f60"]) == {"a", "it's \u4f60"}
    assert await ledger.changed_since("ann", before) == {"a", "it's \u4f60"}
    async with ledger.write("bob") as held:
        assert await held.forgotten(["a"]) == frozenset()


async def test_after_an_erasure_nothing_of_the_user_is_left_and_no_revision_comes_twice(ledger: UserLedger) -> None:
    seen = [(await ledger.revision("ann")).number, await touch(ledger, "a"), await touch(ledger, "b")]
    for _ in range(2):  # also of a user who was erased before
        async with ledger.write("ann") as held:
            await held.forget(["a"])
            await held.advance_erase_epoch()
        erased = await settled(ledger)
        assert erased > max(seen)
        for earlier in seen:
            assert await ledger.changed_since("ann", earlier) is None  # a reader has to load everything
        assert await ledger.changed_since("ann", erased) == frozenset()
        seen += [erased, await touch(ledger, "new")]
        assert seen[-1] > erased
        assert await ledger.changed_since("ann", erased) == {"new"}
        async with ledger.write("ann") as held:
            assert await held.forgotten(["a"]) == frozenset()


async def test_a_life_has_a_number_that_only_its_end_changes(ledger: UserLedger) -> None:
    for number in range(3):
        assert await ledger.erase_epoch("ann") == number
        async with ledger.write("ann") as held:
            held.touch(["a"])
            assert await ledger.erase_epoch("ann") == number
            await held.advance_erase_epoch()
    assert await ledger.erase_epoch("bob") == 0


async def test_a_lost_lock_ends_no_life(deployment: Deployment, ledger: UserLedger) -> None:
    await touch(ledger, "a")
    async with lost(deployment) as held:
        await touch(ledger, "b")
        with pytest.raises(Conflict):
            await held.advance_erase_epoch()
    assert await ledger.changed_since("ann", 0) is None
    assert await settled(ledger) > 2


async def test_what_was_announced_is_told_once_it_is_released(ledger: UserLedger) -> None:
    before = await touch(ledger, "a")
    async with ledger.write("ann") as held:
        held.touch(["m"])
        await held.renew()
        await held.renew()
        held.touch(["n"])
        assert await ledger.changed_since("ann", before) == frozenset()
    assert await ledger.changed_since("ann", before) == {"m", "n"}
    async with ledger.write("ann") as held:
        held.touch(f"many{n}" for n in range(5_000))
        await held.renew()
    assert await ledger.changed_since("ann", before) is None


async def test_who_lost_the_lock_makes_readers_reload(deployment: Deployment, ledger: UserLedger) -> None:
    slow = lost(deployment)
    await slow.__aenter__()
    async with ledger.write("ann"):
        inside = await ledger.revision("ann")
        await slow.__aexit__(None, None, None)
    after = await settled(ledger)
    assert after > inside.number
    assert await ledger.changed_since("ann", inside.number - 1) is None
    assert await ledger.changed_since("ann", after) == frozenset()


async def test_who_waits_too_long_for_the_lock_is_told_so(deployment: Deployment) -> None:
    deployment.bounds.lock_wait_seconds = 0.1
    async with deployment.start() as one, deployment.start() as two, one.ledger.write("ann"):
        with pytest.raises(Unavailable):
            async with two.ledger.write("ann"):
                pytest.fail("the lock is held by somebody else")
        async with two.ledger.write("bob"):  # other users are free
            pass


async def test_a_cancelled_wait_for_the_lock_holds_nothing(ledger: UserLedger) -> None:
    for moment in range(20):

        async def hold_on() -> None:
            async with ledger.write("ann"):
                await asyncio.Event().wait()

        waiting = asyncio.ensure_future(hold_on())  # noqa: TID251  # the task is what gets cancelled
        await asyncio.sleep(moment * 0.0001)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await touch(ledger, f"m{moment}")
    assert await ledger.changed_since("ann", 0) == {f"m{moment}" for moment in range(20)}
