"""After forgetting, no row holds the words that were said; after erasing, nothing that we store does."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from learning_parts import Bench, Faults, Killed
from turn_logs import Process

from memory.errors import NotFound
from memory.learn.worker import Worker, WorkerSettings
from memory.model import Change, ChangeKind, MemoryStatus, Role
from memory.model.wordings import wordings_of
from memory.ports import MemoryFilter
from memory.service.locked_writes import write_rows
from memory.service.requests import MemoryEdit

MARKER = "xylophone quartz lantern"
SAID = (f"Hm, {MARKER}", f"I live in Ulm. And so the {MARKER.upper()} again")


async def told(bench: Bench, process: Process) -> tuple[Worker, list[str]]:
    """A worker that has learnt turns with the marker, and their ids."""
    worker = bench.worker(process, settings=WorkerSettings(words_of=frozenset({Role.USER})))
    turns = [await bench.tell(process, said, project="atlas") for said in SAID]
    await bench.learn(process, "And a blue giraffe", session="s2", worker=worker)
    assert len(await rows_with_the_marker(bench)) == 2
    return worker, [turn.id for turn in turns]


async def rows_with_the_marker(bench: Bench) -> list[str]:
    wheres = (MemoryFilter("ann", status=None), MemoryFilter("ann", status=MemoryStatus.RAW))
    found = [record.memory for where in wheres for record in await bench.store.load(where, limit=1_000)]
    return [repr(memory) for memory in found if MARKER in repr(memory).casefold()]


def tables_with_the_marker(bench: Bench) -> list[str]:
    """Those that hold its first word as it was written; searches hold words one by one."""
    word = MARKER.split()[0]
    return [table for written in (word, word.upper()) for table in bench.deployment.places_with(written)]


@pytest.mark.parametrize("asked", [f"Forget the {MARKER}.", "Forget everything about me."])
async def test_forgotten_in_a_chat_no_row_holds_the_words(bench: Bench, process: Process, asked: str) -> None:
    worker, _ = await told(bench, process)
    await bench.learn(process, asked, project="atlas", worker=worker)
    assert await rows_with_the_marker(bench) == []


@pytest.mark.parametrize("number", range(1, 5))
@pytest.mark.parametrize("name", ["delete", "forget"])
async def test_killed_while_a_memory_is_forgotten_a_repeat_finds_its_words(
    bench: Bench, name: str, number: int
) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process)
        (home,) = [memory for memory in await bench.memories() if "Ulm" in memory.content]
        faults = Faults(name=name, number=number, error=Killed())
        through = replace(bench, store=faults.around(bench.store))
        with suppress(Killed):
            dying = replace(process, ledger=faults.around(process.ledger))
            await through.erasure(dying).memory("ann", home.id)
    async with bench.deployment.start() as survivor:
        with suppress(NotFound):  # it had been deleted
            await bench.erasure(survivor).memory("ann", home.id)
    assert not [row for row in await rows_with_the_marker(bench) if "Ulm" in row]
    assert "And a blue giraffe" in await bench.raw_words()


@pytest.mark.parametrize("way", ["the turns", "the project", "everything"])
async def test_erased_nothing_that_we_store_holds_the_words(bench: Bench, way: str) -> None:
    async with bench.deployment.start() as process:
        _, turn_ids = await told(bench, process)
    assert tables_with_the_marker(bench)
    async with bench.later(1000) as process:
        for turn_id in turn_ids if way == "the turns" else ():
            await bench.erasure(process).source("ann", turn_id)
        if way != "the turns":
            await bench.erasure(process).scope("ann", "atlas" if way == "the project" else "")
    assert await rows_with_the_marker(bench) == []
    assert tables_with_the_marker(bench) == []
    assert await bench.raw_words() == ([] if way == "everything" else ["And a blue giraffe"])


async def test_what_a_memory_said_before_a_correction_is_forgotten_on_request(bench: Bench, process: Process) -> None:
    await bench.learn(process, "My boat is called Nereid.")
    (boat,) = await bench.memories()
    edited = MemoryEdit(content="My boat is called Calypso.").applied_to(boat, now=boat.updated_at + 1)
    edited = MemoryEdit(content="My ship is called Calypso.").applied_to(edited, now=boat.updated_at + 2)
    vectors = await bench.embedder.embed([edited.content], is_urgent=False)
    async with process.ledger.write("ann") as held:
        await write_rows(bench.store, held, "ann", [Change(ChangeKind.UPDATE, edited)], vectors)
    await bench.learn(process, "Please forget that my boat is called Nereid.", session="s2")
    (ship,) = await bench.memories()
    assert ship.content == "My ship is called Calypso."
    assert [one.content for one in wordings_of(ship)] == ["My boat is called Calypso."]
