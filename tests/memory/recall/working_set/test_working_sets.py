"""Working sets: never older than the last finished write, never half of one."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, RLock
from typing import Any, ClassVar

import pytest
from milvus_kinds import MILVUS_LITE, MILVUS_SERVER, prepared, real_milvus
from milvus_standalone import SERVER_IN_SOAK
from working_set_world import DIMENSION, HANG_SECONDS, IMPATIENT, Watched, memory, opened, process, until, world

from memory.adapters.in_memory import InMemoryStore
from memory.model import MemoryStatus, Record
from memory.ports import MemoryFilter, MemoryStore
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.layout import Layout
from memory.recall.working_set import working_sets
from memory.recall.working_set.working_set import SetState

STORES = (
    "in memory",
    pytest.param(MILVUS_LITE, marks=pytest.mark.full("the same as on the store in memory")),
    pytest.param(MILVUS_SERVER, marks=pytest.mark.soak(SERVER_IN_SOAK)),
)


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MemoryStore]:
    if request.param == "in memory":
        yield InMemoryStore(dimension=DIMENSION)
        return
    async with opened(real_milvus(request, request.param), request.getfixturevalue("collection")) as milvus:
        yield await prepared(milvus)


async def test_what_another_process_wrote_is_seen_by_the_next_request(tmp_path: Path, store: MemoryStore) -> None:
    async with world(tmp_path, store) as here:
        await here.write(memory("a"), memory("b"))
        assert await here.seen() == {"a": "content of a", "b": "content of b"}
        await here.write(memory("c"), memory("a", "changed"), writer=1)
        assert await here.seen(waits=False) == {"a": "changed", "b": "content of b", "c": "content of c"}
        await here.write(forget=("a", "c"))
        assert await here.seen(waits=False) == {"b": "content of b"}


async def test_what_is_put_away_is_in_no_set_and_takes_no_room_in_it(tmp_path: Path, store: MemoryStore) -> None:
    async with world(tmp_path, store) as here:
        await here.write(memory("a"), memory("b"), replace(memory("away"), status=MemoryStatus.ARCHIVED))
        assert sorted(await here.seen() or ()) == ["a", "b"]
        await here.write(replace(memory("b"), status=MemoryStatus.ARCHIVED))
        assert sorted(await here.seen(waits=False) or ()) == ["a"]
        await here.write(memory("away"))
        assert sorted(await here.seen(waits=False) or ()) == ["a", "away"]


async def test_a_set_that_is_current_costs_the_store_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.write(memory("a"))
        await here.seen()
        await here.write(memory("b"), memory("c"))
        here.store.calls.clear()
        for _ in range(5):
            assert len(await here.seen() or ()) == 3
        assert here.store.calls == ["get"]


async def test_nobody_ever_sees_half_of_a_write(tmp_path: Path, store: MemoryStore) -> None:
    async with world(tmp_path, store, patience=IMPATIENT) as here:
        await here.write(memory("x", "0"), memory("y", "0"))
        await here.seen()
        for version in ("1", "2"):
            async with here.writers[0].write("ann") as held:
                before = await here.seen(waits=False)
                held.touch(["x", "y"])
                await here.put(memory("x", version))
                assert await here.seen(waits=False) in (before, {})
                await held.renew()
                await here.put(memory("y", version))
                assert await here.seen(waits=False) in (before, {})
            assert await here.seen() == {"x": version, "y": version}


async def test_a_set_loaded_while_somebody_writes_is_whole(tmp_path: Path, store: MemoryStore) -> None:
    watched = Watched(store)
    async with world(tmp_path, watched) as here:
        await here.write(memory("x", "old"), memory("y", "old"))
        async with asyncio.TaskGroup() as group, here.writers[0].write("ann") as held:
            held.touch(["x", "y", "z"])
            await here.put(memory("x", "new"))
            loading = group.create_task(here.seen(waits=True))
            await until(lambda: "load_few" in watched.calls)
            await asyncio.sleep(0.1)
            assert not loading.done(), "half of a write was taken for a set"
            await here.put(memory("y", "new"), memory("z", "new"))
        assert loading.result() == {"x": "new", "y": "new", "z": "new"}


async def test_a_write_that_ended_counts_even_while_the_next_is_under_way(tmp_path: Path, store: MemoryStore) -> None:
    """What it changed cannot be read safely yet, so it is left out; the rest is served."""
    async with world(tmp_path, store, patience=IMPATIENT) as here:
        await here.write(memory("a", "old"), memory("b", "old"), memory("c", "old"))
        await here.seen()
        await here.write(memory("a", "new"), forget=("c",))
        async with here.writers[1].write("ann") as held:
            held.touch(["b"])
            assert await here.seen(waits=False) == {"b": "old"}
        assert await here.seen() == {"a": "new", "b": "old"}


async def test_a_change_log_that_does_not_reach_back_means_a_new_load_at_once_and_no_old_answer(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.write(memory("a", "old"))
        await here.seen()
        for batch in range(2):  # more than the ledger remembers
            await here.write(memory("a", "new"), *(memory(f"m{batch}-{n}") for n in range(600)))
        here.store.calls.clear()
        assert await here.seen(waits=False) is None
        await until(lambda: "load_few" in here.store.calls)  # without a further request
        found = await here.seen(waits=True) or {}
        assert (len(found), found["a"]) == (1_201, "new")


async def test_of_a_holder_that_died_what_it_announced_is_read_anew_and_nothing_else(tmp_path: Path) -> None:
    async with world(tmp_path, patience=IMPATIENT) as here:
        await here.write(memory("a", "old"), memory("z"))
        assert await here.seen() == {"a": "old", "z": "content of z"}
        async with process(tmp_path) as victim:
            holding = victim.write("ann")
            held = await holding.__aenter__()
            held.touch(["a"])
            await held.renew()
            await here.put(memory("a", "new"))  # and dies before it can say so
        assert await here.seen(waits=False) == {"a": "old", "z": "content of z"}  # nothing has ended yet
        here.store.calls.clear()
        await here.write(memory("b"))
        assert await here.seen() == {"a": "new", "b": "content of b", "z": "content of z"}
        assert "load_few" not in here.store.calls, "a dead holder made the set load anew"


async def test_a_set_goes_from_state_to_state_as_the_table_says(tmp_path: Path) -> None:
    async with world(tmp_path, memories_max=2) as here:
        await here.write(memory("a"))
        assert here.sets.state_of("ann") is SetState.ABSENT
        here.store.gate.clear()
        task = here.sets.prefetch("ann").task
        await asyncio.sleep(0)
        assert here.sets.state_of("ann") is SetState.OPENING
        await task
        assert here.sets.state_of("ann") is SetState.WAITING
        here.store.gate.set()
        await here.seen()
        assert here.sets.state_of("ann") is SetState.HELD
        await here.write(memory("b"))
        here.store.is_down = True
        await here.seen(waits=False)
        assert here.sets.state_of("ann") is SetState.BEHIND
        here.store.is_down = False
        await here.seen()
        assert here.sets.state_of("ann") is SetState.HELD
        await here.write(memory("c"))
        await here.seen()
        assert here.sets.state_of("ann") is SetState.RESTING


async def test_a_frozen_store_costs_a_request_its_patience_and_the_memories_that_changed(tmp_path: Path) -> None:
    async with world(tmp_path, patience=IMPATIENT) as here:
        await here.write(memory("a"), memory("b"))
        await here.seen()
        await here.write(memory("a", "changed"))
        here.store.gate.clear()
        for _ in range(3):
            assert await here.seen(waits=False) == {"b": "content of b"}
        here.store.gate.set()
        assert await here.seen() == {"a": "changed", "b": "content of b"}


async def test_a_request_cut_off_in_the_middle_of_a_refresh_leaves_the_set_sound(tmp_path: Path) -> None:
    """At every moment that a request may be cancelled; large enough to be laid out in a thread."""
    store = InMemoryStore(dimension=DIMENSION)
    everything = {f"m{n}": f"content of m{n}" for n in range(600)}
    async with world(tmp_path, store) as here:
        await here.write(*(memory(memory_id) for memory_id in everything))
        assert await here.seen() == everything
        for moment in range(40):
            changed = f"m{moment * 7}"
            everything[changed] = f"changed at moment {moment}"
            everything[f"new{moment}"] = "new"
            await here.write(memory(changed, everything[changed]), memory(f"new{moment}", "new"))
            request = asyncio.ensure_future(here.seen(waits=False))  # noqa: TID251  # the task is what gets cancelled
            for _ in range(moment):
                await asyncio.sleep(0)
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)
            assert await here.seen() == everything


class OneHandCorpus(Corpus):
    """Is laid out for as long as a test says, and notices whoever touches it meanwhile."""

    touches: ClassVar[list[str]] = []
    is_laid_out: ClassVar[Event]  # begun to be
    may_end: ClassVar[Event]
    _busy: RLock

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._busy = RLock()
        super().__init__(*arguments, **options)

    @contextmanager
    def _in_hand(self, what: str) -> Iterator[None]:
        if not self._busy.acquire(blocking=False):
            self.touches.append(what)
            yield
            return
        yield
        self._busy.release()

    def add(self, record: Record) -> None:
        with self._in_hand("add"):
            super().add(record)

    def remove(self, memory_id: str) -> None:
        with self._in_hand("remove"):
            super().remove(memory_id)

    def prepare(self) -> Layout:
        with self._in_hand("prepare"):
            self.is_laid_out.set()
            self.may_end.wait(HANG_SECONDS)
            return super().prepare()


async def test_a_request_cut_off_leaves_the_set_to_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_sets, "Corpus", OneHandCorpus)
    OneHandCorpus.is_laid_out, OneHandCorpus.may_end = is_laid_out, may_end = Event(), Event()
    may_end.set()
    everything = {f"m{n}": f"content of m{n}" for n in range(400)}
    async with world(tmp_path, patience=0.001) as here:
        await here.write(*(memory(memory_id) for memory_id in everything))
        assert await here.seen() == everything
        for moment in range(3):
            everything["m7"] = f"changed at moment {moment}"
            await here.write(memory("m7", everything["m7"]))
            here.store.gate.clear()
            is_laid_out.clear()
            may_end.clear()
            request = asyncio.ensure_future(here.sets.corpus("ann"))  # noqa: TID251  # the task is what gets cancelled
            await until(is_laid_out.is_set)  # m7 is out by now, and the rest being laid out
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)
            here.store.gate.set()
            for _ in range(20):  # what waited for the store goes on
                await asyncio.sleep(0)
            may_end.set()
            assert await here.seen() == everything
    assert not OneHandCorpus.touches


async def test_while_the_ledger_is_silent_nothing_that_may_have_been_forgotten_is_served(tmp_path: Path) -> None:
    async with world(tmp_path, patience=HANG_SECONDS) as here:
        await here.write(memory("a"), memory("b"))
        assert len(await here.seen() or ()) == 2
        here.ledger.is_down = True
        await here.write(forget=("a",))
        assert await here.seen(waits=False) is None
        here.ledger.is_down = False
        assert await here.seen(waits=False) == {"b": "content of b"}
        here.ledger.close("revision")  # not down, but frozen
        async with asyncio.timeout(HANG_SECONDS):
            assert await here.sets.corpus("ann", seconds=0.03) is None
        here.ledger.gate.set()
        assert await here.seen(waits=False) == {"b": "content of b"}


async def test_fifty_at_once_never_see_anything_but_what_the_store_held(tmp_path: Path, store: MemoryStore) -> None:
    """A random walk of writes from two processes. Contents are version numbers that only grow.

    A request may see a version if that write had begun when the request ended; it must not see one that was replaced,
    or deleted, by a write that had ended when the request came. At the end the set is the store.
    """
    chance = random.Random(7)
    begun: dict[str, int] = {}  # the newest version that somebody began to write; -1: to delete
    ended: dict[str, int] = {}  # the newest version whose write has ended
    clock = itertools.count(1)
    is_over = False

    async with world(tmp_path, store, patience=IMPATIENT) as here:
        await here.seen()

        async def write_on(writer: int) -> None:
            for _ in range(25):
                ids = chance.sample([f"m{n}" for n in range(12)], chance.randint(1, 4))
                gone = chance.random() < 0.3
                async with here.writers[writer].write("ann") as held:
                    version = next(clock)
                    begun.update(dict.fromkeys(ids, version))
                    held.touch(ids)
                    for memory_id in ids:  # one after another: what is under way is visible by halves
                        if gone:
                            await here.store.delete("ann", [memory_id])
                        else:
                            await here.put(memory(memory_id, str(version)))
                        await asyncio.sleep(0)
                ended.update(dict.fromkeys(ids, version))
                await asyncio.sleep(chance.random() * 0.01)

        async def look_on() -> int:
            served = 0
            while not is_over:
                known = dict(ended)
                seen = await here.seen(waits=False)
                served += seen is not None
                for memory_id, content in (seen or {}).items():
                    assert known.get(memory_id, 0) <= int(content) <= begun[memory_id], memory_id
                await asyncio.sleep(chance.random() * 0.02)
            return served

        async with asyncio.TaskGroup() as group:
            readers = [group.create_task(look_on()) for _ in range(50)]
            await asyncio.gather(write_on(0), write_on(1))
            is_over = True
        assert all(reader.result() for reader in readers)
        everything = await store.load(MemoryFilter("ann", status=None), limit=100)
        assert await here.seen() == {record.memory.id: record.memory.content for record in everything}
