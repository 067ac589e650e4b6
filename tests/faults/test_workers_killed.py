"""Real workers on real parts: killed with -9 while they learn, frozen past their lease, two at once for one user."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from learning_processes import LearningProcesses, Records, records_of
from trained_reader import trained_reader
from turn_logs import a_turn

from memory.learn.gate import GateLimits
from memory.model import STORED_ACTS, MemoryStatus
from memory.processes.composition import SYSTEM_CLOCK

USERS = tuple(f"user-{number}" for number in range(8))
KILLS = 10
KILL_SECONDS = (0.02, 0.7)  # after a batch of work was given to a worker that was ready for it
SEED = 20_251
THINGS = (
    "bicycle, harp, kayak, violin, tent, drone, loom, telescope, piano, canoe, anvil, kiln, sextant, lathe, easel, "
    "typewriter, gramophone, barometer, hammock"
).split(", ")
PLACES = "in the cellar, at the lake house, behind the garage, in storage unit 9, in Porto".split(", ")
TRIPS = ("Lisbon", "Kyoto", "Oslo")


@dataclass(frozen=True, slots=True)
class Said:
    turn_id: str
    user: str
    session: str
    text: str


def said_by(user: str) -> list[Said]:
    """25 statements in three sessions: 19 things, 3 budgets that each change once, and 3 things told again."""
    texts = [f"My {thing} is {PLACES[i % len(PLACES)]} since {1950 + i}." for i, thing in enumerate(THINGS[:16])]
    texts += [f"My budget for the {trip} trip is ${i + 1},000." for i, trip in enumerate(TRIPS)]
    texts += [f"My budget for the {trip} trip is now ${i + 5},000 instead." for i, trip in enumerate(TRIPS)]
    texts += texts[:3]
    return [Said(f"{user}/{i}", user, f"s{i % 3}", text) for i, text in enumerate(texts)]


async def learnable(told: Sequence[Said]) -> list[Said]:
    """Those that the trained reader claims, as it does in the worker: whoever is not killed learns just these."""
    turns = [a_turn(said.turn_id, text=said.text, user=said.user, session=said.session) for said in told]
    claims = await trained_reader().read(turns, context=())
    kept = {c.evidence.turn_id for c in claims if c.act in STORED_ACTS and c.confidence >= GateLimits().confidence_min}
    return [said for said in told if said.turn_id in kept]


async def check_as_if_nothing_had_happened(
    records: Records, user: str, told: Sequence[Said]
) -> dict[str, MemoryStatus]:
    """Each statement stands once, with every turn that said it; what is superseded names what took its place.

    The status of each, by what it says: the same for everybody who says the same, in the same sessions, however their
    turns were cut into windows and whoever was killed over them.
    """
    memories = await records.memories(user)
    rows = {memory.content: memory for memory in memories}
    expected = await learnable(told)
    assert len(expected) >= len(told) * 2 // 3, "the reader claims too little of it: the test shows little"
    assert Counter(memory.content for memory in memories) == Counter({said.text for said in expected})
    for content, memory in rows.items():
        assert {e.turn_id for e in memory.evidence} == {said.turn_id for said in expected if said.text == content}
        is_superseded = memory.status is MemoryStatus.SUPERSEDED
        assert is_superseded is (memory.superseded_by in {other.id for other in memories})
    backlog = await records.turn_log.backlog(user, opened_before=1e12)
    assert (backlog.pending, backlog.failed) == (0, 0)
    assert (await records.ledger.revision(user)).is_settled
    return {content: memory.status for content, memory in rows.items()}


@pytest.mark.stack
async def test_ten_kills_of_the_worker_lose_double_and_halve_nothing(parts: LearningProcesses) -> None:
    chance = random.Random(SEED)  # the same moments at every run
    told = [said for turn in zip(*map(said_by, USERS), strict=True) for said in turn]  # all users, turn by turn
    batches = [told[i * len(told) // (KILLS + 1) : (i + 1) * len(told) // (KILLS + 1)] for i in range(KILLS + 1)]
    began, hits, under_way = SYSTEM_CLOCK() - len(told), 0, 0
    async with records_of(parts) as records:
        worker = parts.start_worker()
        at = began
        for number, batch in enumerate(batches):
            await worker.warm()
            successor = parts.start_worker() if number < KILLS else None  # takes seconds to come up
            for said in batch:
                at += 1.0
                await records.tell(said.turn_id, said.user, said.text, at=at, session=said.session)
            if successor is None:
                break
            await asyncio.sleep(chance.uniform(*KILL_SECONDS))
            under_way = (await records.turn_log.depth(now=SYSTEM_CLOCK())).leased
            worker.kill()
            hits += under_way > 0
            worker = successor
        await records.learnt(*USERS, seconds=30)
        outcomes = [await check_as_if_nothing_had_happened(records, user, said_by(user)) for user in USERS]
        for user, outcome in zip(USERS, outcomes, strict=True):
            assert outcome == outcomes[0], f"{user} said what {USERS[0]} said"
        assert MemoryStatus.SUPERSEDED in outcomes[0].values(), "nothing takes a place: the test shows little"
        assert worker.stop() == 0
    assert hits >= KILLS // 3, "too few kills met a worker at work: the test shows little"


@pytest.mark.stack
async def test_two_workers_that_learn_two_sessions_of_one_user_lose_no_update(parts: LearningProcesses) -> None:
    told = said_by("ann")
    async with records_of(parts) as records:
        workers = [parts.start_worker(), parts.start_worker()]
        for worker in workers:
            await worker.warm()
        at = SYSTEM_CLOCK() - len(told)
        for number, said in enumerate(told):
            await records.tell(said.turn_id, "ann", said.text, at=at + number, session=f"s{number % 2}")
        await records.learnt("ann")
        await check_as_if_nothing_had_happened(records, "ann", told)
        changed = await records.ledger.changed_since("ann", 0)
        assert changed is None or changed >= {memory.id for memory in await records.memories("ann")}
        assert [worker.stop() for worker in workers] == [0, 0]


@pytest.mark.stack
async def test_a_worker_that_was_frozen_past_its_lease_undoes_nothing_of_its_successor(
    parts: LearningProcesses,
) -> None:
    chance = random.Random(SEED)  # the same moments at every run
    told, rounds = said_by("ann"), 5
    async with records_of(parts) as records:
        workers = [parts.start_worker({"memory": {"learn": {"lease_seconds": 1}}}) for _ in range(2)]
        for worker in workers:
            await worker.warm()
        began = SYSTEM_CLOCK() - len(told)
        for number in range(rounds):
            for i, said in list(enumerate(told))[number::rounds]:
                await records.tell(said.turn_id, "ann", said.text, at=began + i, session=f"{said.session}/{i}")
            await asyncio.sleep(chance.uniform(*KILL_SECONDS))
            frozen = workers[number % 2].process
            frozen.send_signal(signal.SIGSTOP)
            await asyncio.sleep(1.5)
            frozen.send_signal(signal.SIGCONT)
        await records.learnt("ann")
        await check_as_if_nothing_had_happened(records, "ann", told)
        assert [worker.stop() for worker in workers] == [0, 0]
