"""Upkeep on SQLite and a store in memory: what it changes, what it leaves alone, and what a crash leaves behind."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import memory_rows
import numpy as np
import pytest
from absent_stores import memory_bank
from frozen_parts import Frozen
from hashing_embedder import HashingEmbedder
from learning_parts import Faults, Killed
from note_lookup import notes_of
from plain_reader import FactReader
from prometheus_client import CollectorRegistry
from reading_parts import ScriptedChat
from turn_logs import Process, sqlite_deployment

from memory.adapters.in_memory import InMemoryStore
from memory.errors import Unavailable
from memory.learn.reflection import Reflector
from memory.learn.retention import DAY, RetentionReason, RetentionRules
from memory.learn.upkeep import ROWS_PER_WRITE, Upkeep, UpkeepLoop, UpkeepTask
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, PastNote, Trust
from memory.ports import MemoryFilter, MemoryStore, StatementReader
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry

NOW = 1_750_000_000.0
EMBEDDER = HashingEmbedder()


@dataclass
class World:
    """One deployment; what runs in it is handed out by `upkeep`."""

    process: Process
    store: MemoryStore = field(default_factory=lambda: InMemoryStore(dimension=EMBEDDER.dimension))
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))
    reflecting: Reflector | None = None
    reader: StatementReader | None = None

    def upkeep(self, rules: RetentionRules | None = None, *, faults: Faults | None = None) -> Upkeep:
        through, process = (faults or Faults()).around, self.process
        return Upkeep(
            memories=memory_bank(through(self.store), through(process.ledger), EMBEDDER),
            stores=replace(process.stores, notes=through(process.notes), usage_counts=through(process.usage_counts)),
            telemetry=Telemetry(lambda: NOW, self.metrics),
            rules=rules or RetentionRules(),
            reflecting=self.reflecting,
            reader=self._ready if self.reader is not None else None,
        )

    def schedule(self, upkeep: Any, *, clock: Callable[[], float] = lambda: NOW) -> UpkeepLoop:
        schedule = self.process.upkeep
        return UpkeepLoop(upkeep, upkeep_schedule=schedule, clock=clock, metrics=self.metrics, every=DAY)

    async def _ready(self) -> StatementReader:
        assert self.reader is not None
        return self.reader

    async def put(self, *memories: Memory) -> None:
        for user_id in {memory.user_id for memory in memories}:
            own = [memory for memory in memories if memory.user_id == user_id]
            vectors = await EMBEDDER.embed([memory.content for memory in own], is_urgent=False)
            async with self.process.ledger.write(user_id) as held:
                held.touch([memory.id for memory in own])
                await self.store.apply(user_id, [Change(ChangeKind.CREATE, memory) for memory in own], vectors)

    async def rows(self, user_id: str = "ann") -> dict[str, Memory]:
        found = await self.store.load(MemoryFilter(user_id, status=None), limit=5_000)
        return {record.memory.id: record.memory for record in found}

    async def by_status(self, status: MemoryStatus, user_id: str = "ann") -> set[str]:
        return {memory.id for memory in (await self.rows(user_id)).values() if memory.status is status}

    async def count(self, *memory_ids: str) -> None:
        """As a filter; what it posted is written before anything that is written after it."""
        self.process.usage_counts.count("ann", memory_ids, at=NOW)
        await self.process.log._database.write(lambda connection: None)


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    async with sqlite_deployment(folder).start() as process:
        yield World(process)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as opened:
        yield opened


def memory(memory_id: str, content: str = "", *, days_ago: float = 0.0, **rest: Any) -> Memory:
    said = {"evidence": (Evidence("said", f"turn-{memory_id}"),)}
    return memory_rows.memory(memory_id, content, at=NOW - days_ago * DAY, **(said | rest))


MIXED = (
    memory("tea", "I like green tea", trust=Trust.EXPLICIT),
    memory("tea again", "i like GREEN tea!"),
    memory("coffee", "I don't like coffee"),
    memory("coffee too", "I like coffee"),
    memory("week", "I am in Lisbon this week", category="context", days_ago=400),
    memory("week, used", "I am in Porto this week", category="context", days_ago=400, used_at=NOW),
    memory("stored", "I am in Rome this week", category="context", days_ago=400, trust=Trust.BOOTSTRAPPED),
    memory("old", "I lived in Bonn", days_ago=400, status=MemoryStatus.SUPERSEDED, superseded_at=NOW - 400 * DAY),
    memory("bob's", "I like green tea", user_id="bob"),
    memory("bob's too", "I like green tea", user_id="bob"),
)


async def test_duplicates_and_the_useless_are_put_away_with_a_reason_and_nothing_is_lost(here: World) -> None:
    await here.put(*MIXED)
    before, revision = await here.rows(), (await here.process.ledger.revision("ann")).number
    await here.upkeep().run("ann")
    after = await here.rows()
    assert after.keys() == before.keys()
    assert {m.id: m.metadata["archived"]["why"] for m in after.values() if m.status is MemoryStatus.ARCHIVED} == {
        "tea again": "duplicate",
        "week": "unused",
    }
    assert [one.turn_id for one in after["tea"].evidence] == ["turn-tea", "turn-tea again"]
    changed = {"tea", "tea again", "week"}
    assert await here.process.ledger.changed_since("ann", revision) == changed  # readers are told
    assert {i: m for i, m in after.items() if i not in changed} == {i: m for i, m in before.items() if i not in changed}
    assert await here.by_status(MemoryStatus.ACTIVE, "bob") == {"bob's", "bob's too"}
    assert await here.upkeep().run("ann") == []


async def test_a_dry_run_says_exactly_what_a_run_does_and_changes_nothing(here: World) -> None:
    rules = RetentionRules(quota=4, erase_after=30 * DAY)
    await here.put(*MIXED)
    await here.count("coffee", "coffee too", "coffee")
    before, revision = await here.rows(), await here.process.ledger.revision("ann")
    waiting = await here.process.usage_counts.unstored("ann", limit=10)
    assert len(waiting) == 2

    would = await here.upkeep(rules).run("ann", is_dry=True)

    assert await here.rows() == before
    assert await here.process.ledger.revision("ann") == revision
    assert await here.process.usage_counts.unstored("ann", limit=10) == waiting
    did = await here.upkeep(rules).run("ann")
    assert [(step.why, step.memory) for step in would] == [(step.why, step.memory) for step in did]
    assert {step.why.value for step in did} == {"united", "duplicate", "unused", "quota", "erased"}
    assert "old" not in await here.rows()


async def test_uses_are_brought_in_for_many_memories_at_once_and_once(here: World) -> None:
    ids = [f"m{number:04}" for number in range(ROWS_PER_WRITE + 30)]
    await here.put(*(memory(memory_id, access_count=2) for memory_id in ids))
    before = await here.rows()
    await asyncio.gather(here.count(*ids), here.count("m0001", "never was"), here.count("m0001"))
    revision = (await here.process.ledger.revision("ann")).number
    for _ in range(2):
        await here.upkeep().run("ann", [])
    after = await here.rows()
    assert after["m0001"] == replace(before["m0001"], access_count=5, used_at=NOW)
    assert {after[i].access_count for i in ids if i != "m0001"} == {3}
    assert {after[i].updated_at for i in ids} == {NOW}
    assert await here.process.usage_counts.unstored("ann", limit=10) == {}
    assert (await here.process.ledger.revision("ann")).number == revision + 4  # two writes for 230 memories


async def test_a_quota_reached_by_many_is_kept_in_pieces(here: World) -> None:
    ids = [f"m{number:04}" for number in range(2 * ROWS_PER_WRITE + 50)]
    await here.put(*(memory(i, importance=number / 1_000) for number, i in enumerate(ids)))
    await here.upkeep(RetentionRules(quota=100)).run("ann", [UpkeepTask.PRUNE])
    assert await here.by_status(MemoryStatus.ACTIVE) == set(ids[-100:])
    assert await here.by_status(MemoryStatus.ARCHIVED) == set(ids[:-100])


async def test_a_row_that_was_changed_after_the_plan_is_left_alone_with_all_that_belongs_to_it(here: World) -> None:
    await here.put(*MIXED)
    tea, again, *_ = MIXED
    changed = replace(again, content="I like black tea", updated_at=NOW + 1)

    async def somebody_changes() -> None:
        vectors = await EMBEDDER.embed([changed.content], is_urgent=False)
        await here.store.apply("ann", [Change(ChangeKind.UPDATE, changed)], vectors)

    meddled = replace(here, store=Frozen(here.store, "get", somebody_changes))  # rows are read again before a write
    steps = await meddled.upkeep().run("ann")
    assert [step.memory.id for step in steps] == ["week"]
    rows = await here.rows()
    assert (rows["tea"], rows["tea again"]) == (tea, changed)


async def crashed(upkeep: Upkeep) -> bool:
    try:
        await upkeep.run("ann")
    except Killed:
        return True
    return False


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_call_leaves_nothing_half_done(tmp_path: Path, is_after: bool) -> None:
    """Whatever was cut off, each statement still has an active row, and the next round ends as if nothing had been, but
    for uses that were taken and not stored: they are lost, and never count twice.
    """
    rules = RetentionRules(quota=4, erase_after=30 * DAY)
    wanted: dict[str, Memory] = {}
    for number in itertools.count():
        async with world(tmp_path / str(number)) as here:
            await here.put(*MIXED)
            await here.count("coffee", "coffee")
            await here.process.notes.keep("ann", "k", PastNote("You lived in Bonn", ("old",), 5), made_at=NOW - 1)
            faults = Faults(number=number, error=Killed(), is_after=is_after)
            died = number > 0 and await crashed(here.upkeep(rules, faults=faults))
            rows = await here.rows()
            assert rows["tea"].status is MemoryStatus.ACTIVE
            if rows["tea again"].status is MemoryStatus.ARCHIVED:
                assert len(rows["tea"].evidence) == 2
            if "old" not in rows:
                assert await notes_of(here.process.notes, "ann", ["k"]) == {}
            await here.upkeep(rules).run("ann")
            ended = await here.rows()
            uses = ended["coffee"].access_count
            assert uses == 2 or (died and uses == 0)
            ended["coffee"] = replace(ended["coffee"], access_count=2, used_at=NOW)
            wanted = wanted or ended
            assert ended == wanted
            if number and not died:
                break
    assert number > 15


class Down:
    async def run(self, user_id: str) -> list[Any]:
        raise Unavailable("milvus", "switched off by the test")


async def test_the_schedule_looks_after_everybody_in_their_time_and_ends_when_told_to(here: World) -> None:
    await here.put(*MIXED)
    now = [NOW]
    schedule = partial(here.schedule, clock=lambda: now[0])
    assert not await schedule(here.upkeep()).look_after_next()
    now[0] += DAY + 1
    assert await schedule(Down()).look_after_next()
    assert await schedule(here.upkeep()).look_after_next()
    assert not await schedule(here.upkeep()).look_after_next()
    assert len(await here.by_status(MemoryStatus.ARCHIVED)) == 0  # hers was broken off: it waits for its time
    assert len(await here.by_status(MemoryStatus.ARCHIVED, "bob")) == 1
    now[0] += DAY + 1
    assert await schedule(here.upkeep()).look_after_next()
    assert await here.by_status(MemoryStatus.ARCHIVED) == {"tea again", "week"}
    value = here.metrics.registry.get_sample_value
    assert value("memproxy_upkeep_rounds_total", {"outcome": "broken_off"}) == 1
    assert value("memproxy_upkeep_changes_total", {"why": "duplicate"}) == 2
    until = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(schedule(here.upkeep()).run(until))
        await asyncio.sleep(0)
        until.set()


async def test_nothing_is_derived_about_a_user_who_has_opted_out(here: World) -> None:
    model = ScriptedChat(json.dumps({"summary": "I like green tea and drink it in the morning and after lunch"}))
    here.reflecting = Reflector(model, name="small", at_least=3, seconds=1.0)
    teas = ("I like green tea in the morning", "I drink green tea after lunch", "Green tea helps me write")
    await here.process.opt_outs.set("ann", at=NOW)
    for user_id in ("ann", "bob"):
        of_user = [memory(f"{user_id}{n}", tea, user_id=user_id, category="preference") for n, tea in enumerate(teas)]
        await here.put(*of_user)
        await here.upkeep().run(user_id, [UpkeepTask.REFLECT])
    assert len(model.asked) == 1
    assert (len(await here.rows("ann")), len(await here.rows("bob"))) == (3, 4)


HOME_AND_BEES = "I live in Leeds and I keep bees."


def old(memory_id: str, content: str, **rest: Any) -> Memory:
    return memory(memory_id, content, days_ago=3, evidence=(Evidence(content, f"turn-{memory_id}"),), **rest)


async def test_a_row_of_an_older_release_becomes_one_for_each_fact_once(here: World) -> None:
    here.reader = FactReader()
    await here.put(old("m", HOME_AND_BEES, importance=0.8), old("n", "I sing."))
    steps = await here.upkeep().run("ann")
    rows = {row.content: row for row in (await here.rows()).values()}
    assert set(rows) == {"I live in Leeds", "I keep bees", "I sing."}
    assert {row.evidence[0].quote for row in rows.values()} == {HOME_AND_BEES, "I sing."}
    assert (rows["I live in Leeds"].id, rows["I live in Leeds"].attribute) == ("m", "home")
    assert (rows["I keep bees"].said_at, rows["I keep bees"].importance) == (NOW - 3 * DAY, 0.8)
    (found,) = await here.store.get("ann", ["m"])
    assert np.allclose(found.vector, (await EMBEDDER.embed(["I live in Leeds"], is_urgent=False))[0])
    assert [step.why for step in steps] == [RetentionReason.SPLIT] * 2  # nothing else has changed
    assert await here.upkeep().run("ann") == []  # each row is read once


@pytest.mark.parametrize("is_after", [False, True])
async def test_a_crash_while_rows_are_split_leaves_each_whole_or_split(tmp_path: Path, *, is_after: bool) -> None:
    for number in itertools.count(1):
        async with world(tmp_path / str(number)) as here:
            here.reader = FactReader()
            await here.put(old("m", HOME_AND_BEES))
            faults = Faults(number=number, error=Killed(), is_after=is_after)
            died = await crashed(here.upkeep(faults=faults))
            left = {row.content for row in (await here.rows()).values()}
            assert left in ({HOME_AND_BEES}, {"I live in Leeds", "I keep bees"})
            await here.upkeep().run("ann")
            assert {row.content for row in (await here.rows()).values()} == {"I live in Leeds", "I keep bees"}
            if not died:
                break
