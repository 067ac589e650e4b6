"""How much working sets hold: what makes room, what is too much, what is left behind."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from working_set_world import DIMENSION, Watched, memory, world

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.working_set import working_sets
from memory.adapters.working_set.working_sets import WorkingSetLimits


async def test_the_set_that_was_asked_longest_ago_makes_room(tmp_path: Path) -> None:
    store = InMemoryStore(dimension=DIMENSION)
    async with world(tmp_path, store) as measured:
        await measured.write(*(memory(f"s{n}", user="sue") for n in range(50)))
        await measured.seen("sue")
        each = measured.sets.size_bytes
    watched = Watched(store)
    async with world(tmp_path, watched, limits=WorkingSetLimits(bytes_max=int(each * 2.5))) as here:
        for user in ("ann", "bob", "cid"):
            await here.write(*(memory(f"{user}{n}", user=user) for n in range(50)))
        await here.seen("ann")
        await here.seen("bob")
        await here.seen("ann")
        await here.seen("cid")
        assert here.sets.size_bytes <= each * 2.5
        watched.is_down = True
        assert await here.seen("ann", waits=False) is not None
        assert await here.seen("cid", waits=False) is not None
        assert await here.seen("bob", waits=False) is None
        watched.is_down = False
        await here.write(*(memory(f"more{n}", "a long story " * 40, user="ann") for n in range(300)))
        await here.seen("ann")  # growing makes others go, too
        watched.is_down = True
        assert await here.seen("cid", waits=False) is None


async def test_a_user_with_too_many_memories_is_looked_at_once_and_never_held(tmp_path: Path) -> None:
    watched = Watched(InMemoryStore(dimension=DIMENSION))
    async with world(tmp_path, watched, limits=WorkingSetLimits(memories_max=100)) as here:
        await here.write(*(memory(f"m{n}") for n in range(101)))
        watched.calls.clear()
        for n in range(20):
            assert await here.seen(waits=n % 2 == 0) is None
            await here.write(memory("m0", f"changed {n}"))
        assert watched.calls.count("load_few") == 1
        assert here.sets.size_bytes == 0


async def test_a_user_who_outgrows_the_limit_is_let_go(tmp_path: Path) -> None:
    watched = Watched(InMemoryStore(dimension=DIMENSION))
    async with world(tmp_path, watched, limits=WorkingSetLimits(memories_max=100)) as here:
        await here.write(*(memory(f"m{n}") for n in range(100)))
        assert len(await here.seen() or ()) == 100
        await here.write(memory("one too many"))
        watched.calls.clear()
        for _ in range(5):
            assert await here.seen() is None
        assert here.sets.size_bytes == 0
        assert watched.calls == ["get"]


async def test_reload_of_many_sets_leaks_no_tasks_and_no_threads(tmp_path: Path) -> None:
    store = InMemoryStore(dimension=DIMENSION)
    async with world(tmp_path, store, limits=WorkingSetLimits(bytes_max=1)) as here:
        for user in ("ann", "bob"):
            await here.write(*(memory(f"{user}{n}", user=user) for n in range(400)))
        for _ in range(10):
            assert len(await here.seen("ann") or ()) == 400
            assert len(await here.seen("bob") or ()) == 400
        assert not here.sets._running
        assert len(here.sets._sets) == 1


async def test_what_was_loaded_is_no_work_for_the_garbage_collector_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_sets, "FREEZE_EVERY_MEMORIES", 100)
    async with world(tmp_path, InMemoryStore(dimension=DIMENSION)) as here:
        await here.write(*(memory(f"m{number}") for number in range(100)))
        before = gc.get_freeze_count()
        try:
            corpus = await here.sets.corpus("ann", waits=True)
            assert corpus is not None
            assert len(corpus) == 100
            assert gc.get_freeze_count() > before
            assert not any(found is corpus for found in gc.get_objects())
        finally:
            gc.unfreeze()
