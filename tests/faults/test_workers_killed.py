"""Real workers, and `memproxy reembed`, killed with -9 while they are at it, frozen past a lease, or two at once."""

from __future__ import annotations

import asyncio
import random
import re
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_embeddings import ForeignEmbeddings, running_foreign_embeddings, vector_of
from kept_things import kept_thing
from learning_processes import LearningProcesses, Records, records_of
from plain_reader import by_words
from reembed_command import OLD, Place, stored
from scripted_model import running_table_model

from memory.model import MemoryStatus, VectorOrigin
from memory.ports import PairRelation, PairVerdict, StatementPair
from memory.processes.composition import SYSTEM_CLOCK

pytestmark = pytest.mark.full("workers are started, and killed or stopped")
USERS = tuple(f"user-{number}" for number in range(4))
KILLS = 4
LEASE_SECONDS = 5  # on a busy machine one of a second runs out while its worker lives
KILL_SECONDS = (0.0, 0.2)  # after a worker was seen at work
BUDGET = re.compile(r"My budget for the (\w+) trip")
SEED = 20_251
TRIPS = ("Lisbon", "Kyoto", "Oslo")
DIMENSION = 24
NEW = VectorOrigin("the new one", DIMENSION)
EMBEDDED = 1_200  # more than a page


@dataclass(frozen=True, slots=True)
class Said:
    turn_id: str
    user: str
    session: str
    text: str


def said_by(user: str) -> list[Said]:
    """25 statements in three sessions: 19 things, 3 budgets that each change once, and 3 things told again."""
    texts = [kept_thing(number) for number in range(16)]
    texts += [f"My budget for the {trip} trip is ${i + 1},000." for i, trip in enumerate(TRIPS)]
    texts += [f"My budget for the {trip} trip is now ${i + 5},000 instead." for i, trip in enumerate(TRIPS)]
    texts += texts[:3]
    return [Said(f"{user}/{i}", user, f"s{i % 3}", text) for i, text in enumerate(texts)]


def changes_budgets(pair: StatementPair) -> PairVerdict:
    older, newer = BUDGET.match(pair.older), BUDGET.match(pair.newer)
    if older is None or newer is None or pair.older == pair.newer:
        return by_words(pair)
    return PairVerdict(PairRelation.REPLACES if older[1] == newer[1] else PairRelation.UNRELATED, 1.0)


@pytest.fixture
def reading() -> Iterator[Mapping[str, Any]]:
    """Settings of workers that learn every statement, whatever processor they run on."""
    with running_table_model(relates=changes_budgets) as settings:
        yield settings


async def check_as_if_nothing_had_happened(
    records: Records, user: str, told: Sequence[Said]
) -> dict[str, MemoryStatus]:
    """Each statement stands once, with every turn that said it; what is superseded names what took its place.

    The status of each, by what it says: the same for everybody who says the same, in the same sessions, however their
    turns were cut into windows and whoever was killed over them.
    """
    memories = await records.memories(user)
    rows = {memory.content: memory for memory in memories}
    assert Counter(memory.content for memory in memories) == Counter({said.text for said in told})
    for content, memory in rows.items():
        assert {e.turn_id for e in memory.evidence} == {said.turn_id for said in told if said.text == content}
        is_superseded = memory.status is MemoryStatus.SUPERSEDED
        assert is_superseded is (memory.superseded_by in {other.id for other in memories})
    backlog = await records.turn_log.backlog(user, opened_before=1e12)
    assert (backlog.pending, backlog.failed) == (0, 0)
    assert (await records.ledger.revision(user)).is_settled
    return {content: memory.status for content, memory in rows.items()}


async def test_kills_of_the_worker_lose_double_and_halve_nothing(
    parts: LearningProcesses, reading: Mapping[str, Any]
) -> None:
    chance = random.Random(SEED)
    told = [said for turn in zip(*map(said_by, USERS), strict=True) for said in turn]  # all users, turn by turn
    batches = [told[i * len(told) // (KILLS + 1) : (i + 1) * len(told) // (KILLS + 1)] for i in range(KILLS + 1)]
    at, hits = SYSTEM_CLOCK() - len(told), 0
    async with records_of(parts) as records:
        worker = parts.start_worker(reading)
        for number, batch in enumerate(batches):
            await worker.warm()
            successor = parts.start_worker(reading) if number < KILLS else None  # takes seconds to come up
            for said in batch:
                at += 1.0
                await records.tell(said.turn_id, said.user, said.text, at=at, session=said.session)
            if successor is None:
                break
            hits += await is_at_work(records)
            await asyncio.sleep(chance.uniform(*KILL_SECONDS))  # not always at the same step
            worker.kill()
            worker = successor
        await records.learnt(*USERS)
        outcomes = [await check_as_if_nothing_had_happened(records, user, said_by(user)) for user in USERS]
        for user, outcome in zip(USERS, outcomes, strict=True):
            assert outcome == outcomes[0], f"{user} said what {USERS[0]} said"
        assert MemoryStatus.SUPERSEDED in outcomes[0].values(), "nothing takes a place: the test shows little"
        assert worker.stop() == 0
    assert hits, "no kill met a worker at work: the test shows little"


async def is_at_work(records: Records) -> bool:
    """Wait until a worker has taken a window; False if all were learnt before that was seen."""
    async with asyncio.timeout(60):
        while not (depth := await records.turn_log.depth(now=SYSTEM_CLOCK())).leased:
            if not depth.due:
                return False
    return True


async def test_a_worker_that_was_frozen_past_its_lease_undoes_nothing_of_its_successor(
    parts: LearningProcesses, reading: Mapping[str, Any]
) -> None:
    told, rounds = said_by("ann"), 3
    learn = {**reading["memory"]["learn"], "lease_seconds": LEASE_SECONDS}
    settings = {**reading, "memory": {"learn": learn}}
    async with records_of(parts) as records:
        workers = [parts.start_worker(settings) for _ in range(2)]
        for worker in workers:
            await worker.warm()
        began = SYSTEM_CLOCK() - len(told)
        for number in range(rounds):
            for i, said in list(enumerate(told))[number::rounds]:
                await records.tell(said.turn_id, "ann", said.text, at=began + i, session=f"{said.session}/{i}")
            await is_at_work(records)
            frozen = workers[number % 2].process
            frozen.send_signal(signal.SIGSTOP)
            await asyncio.sleep(1.5 * LEASE_SECONDS)
            frozen.send_signal(signal.SIGCONT)
        await records.learnt("ann")
        await check_as_if_nothing_had_happened(records, "ann", told)
        assert [worker.stop() for worker in workers] == [0, 0]


async def killed_after(place: Place, server: ForeignEmbeddings, texts: int) -> None:
    """Run it until so many texts were embedded in this run, then kill -9."""
    server.texts.clear()
    process = await place.start()
    async with asyncio.timeout(60):
        while len(server.texts) < texts:
            assert process.returncode is None, (await process.communicate())[1].decode()
            await asyncio.sleep(0.005)
    process.kill()
    await process.communicate()


async def test_killed_in_the_middle_it_loses_no_memory_and_goes_on_where_it_was(tmp_path: Path) -> None:
    place, before = Place(tmp_path), [*stored(EMBEDDED), *stored(50, user_id="bob")]
    await place.fill(*before)
    async with running_foreign_embeddings(dimension=DIMENSION) as server:
        place.configure(server.url, DIMENSION)
        await killed_after(place, server, 350)
        old = await place.records(OLD, "ann", "bob")
        assert {one.id: one for one in before} == {i: record.memory for i, record in old.items()}
        await killed_after(place, server, 350)
        server.texts.clear()
        shown = (await place.run("--json")).shown
        assert shown["embedded"] == len(server.texts)
        assert shown["embedded"] <= len(before) - 400  # of two runs, all but the batch that each was in
        assert shown["embedded_before"] + shown["embedded"] == len(before)
        new = await place.records(NEW, "ann", "bob")
        assert {one.id: one for one in before} == {i: record.memory for i, record in new.items()}
        for record in new.values():
            vector = vector_of(record.memory.content, DIMENSION)
            np.testing.assert_allclose(record.vector, vector / np.linalg.norm(vector), atol=1e-6)
        again = (await place.run("--json")).shown
        assert (again["is_needed"], again["memories"]) == (False, len(before))
