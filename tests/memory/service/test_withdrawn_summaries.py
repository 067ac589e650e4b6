"""Summaries that are gone leave the notes that hold them, whether or not any are still made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from turn_logs import DEPLOYMENTS, START, Process, a_turn, lease_at

from memory.model import PastNote, SessionSummary, TurnStatus
from memory.service.withdrawn_summaries import WithdrawnSummaries


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Process]:
    async with DEPLOYMENTS["sqlite"](tmp_path).start() as running:
        yield running


async def summarised(process: Process, turn_id: str, user: str = "ann") -> SessionSummary:
    await process.log.append(a_turn(turn_id, user=user, status=TurnStatus.CLOSED))
    while lease := await lease_at(process.log, START + 1):
        await process.log.acknowledge(lease)
    (due,) = [one for one in await process.summaries.due(now=START + 9, idle_seconds=0, limit=9) if one.user_id == user]
    made = SessionSummary(
        user, "s1", due.version + 1, "A boat", "", START, START, (turn_id,), made_at=START, series=due.series
    )
    assert await process.summaries.put(due, made, None)
    await process.notes.keep(user, "k1", PastNote("with it", ("m1", made.id), 5), made_at=START)
    await process.notes.keep(user, "k2", PastNote("without", ("m1",), 5), made_at=START)
    return made


def dropping(process: Process) -> WithdrawnSummaries:
    return WithdrawnSummaries(summaries=process.summaries, notes=process.notes, clock=lambda: START + 1)


async def test_only_notes_with_a_withdrawn_summary_are_dropped(process: Process) -> None:
    await summarised(process, "t1")
    assert await dropping(process).drop() == 0
    assert set(await process.notes.find("ann", ["k1", "k2"])) == {"k1", "k2"}
    await process.log.messages.delete_turns("ann", ["t1"])
    assert await dropping(process).drop("bob") == 0
    assert await dropping(process).drop() == 1
    assert set(await process.notes.find("ann", ["k1", "k2"])) == {"k2"}
    assert await process.summaries.withdrawn(limit=9) == []


async def test_a_note_with_the_next_summary_of_the_session_stays(process: Process) -> None:
    await summarised(process, "t1")
    await process.log.messages.delete_turns("ann", ["t1"])
    await summarised(process, "t2")
    assert await dropping(process).drop() == 1
    assert set(await process.notes.find("ann", ["k1"])) == {"k1"}


async def test_it_runs_until_it_is_told_to_stop(process: Process) -> None:
    await summarised(process, "t1")
    await process.log.messages.delete_turns("ann", ["t1"])
    until = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(dropping(process).run(until))
        while await process.notes.find("ann", ["k1"]):
            await asyncio.sleep(0.01)
        until.set()
