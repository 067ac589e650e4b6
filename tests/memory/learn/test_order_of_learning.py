"""What is known in the end follows from what was said when: not from how turns were cut into windows, nor from which
session was learnt first. The same statements are learnt as they were said, and then in other orders and windows.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from hashing_embedder import HashingEmbedder
from learning_parts import Bench
from plain_reader import PlainReader, moves
from turn_logs import START, a_turn, sqlite_deployment

from memory.adapters.in_memory import InMemoryStore
from memory.model import MemoryStatus, Turn, TurnStatus
from memory.ports import StatementReader

ORDERS = 10
SESSIONS = 3
DIMENSION = 384

APPOINTMENTS = tuple(f"My dentist appointment is on {day}." for day in ("Monday", "Tuesday", "Friday", "Sunday"))
MOVES = moves(*pairwise(APPOINTMENTS))  # only to the next one: the first says nothing of the third
PLAIN = (
    "I live in Leeds.",
    "I work at Nokia.",
    APPOINTMENTS[0],
    "My budget is 500.",
    "I live in York.",
    APPOINTMENTS[1],
    "Remember that I live in Oslo.",
    "My cat is called Tom.",
    "I work at Siemens. My sister lives in Porto.",
    "I live in Rome.",
    APPOINTMENTS[2],
    "My sister lives in Lima.",
    "No, my budget is 900.",
    APPOINTMENTS[3],
    "I work at Bosch.",
)
REPEATED = (
    *PLAIN,
    "I live in York.",
    "My cat is called Tom.",
    APPOINTMENTS[0],
    "I work at Siemens.",
    "I live in Oslo.",
)


@dataclass(frozen=True, slots=True)
class Row:
    """What a memory says, whether it counts, and what took its place when."""

    content: str
    status: MemoryStatus
    replaced_by: str
    until: float | None


def said(statements: Sequence[str]) -> list[Turn]:
    """One turn a minute, in three sessions by turns."""
    return [
        a_turn(f"turn-{n}", session=f"s{n % SESSIONS}", text=text, at=START + 60 * n, status=TurnStatus.CLOSED)
        for n, text in enumerate(statements)
    ]


def shuffled(turns: Sequence[Turn], chance: random.Random) -> list[Turn]:
    """Of each session the turns in their order, the sessions mixed: at times one after the other, at times by turns."""
    waiting = [[turn for turn in turns if turn.scope.session_id == f"s{number}"] for number in range(SESSIONS)]
    found: list[Turn] = []
    stays = chance.random()
    while waiting := [session for session in waiting if session]:
        session = waiting[0] if chance.random() < stays else chance.choice(waiting)
        found.append(session.pop(0))
    return found


async def learnt(folder: Path, turns: Sequence[Turn], reader: StatementReader, pauses: Sequence[bool]) -> list[Row]:
    """All that is stored in the end. `pauses`: after which turns the worker comes by."""
    store, embedder = InMemoryStore(dimension=DIMENSION), HashingEmbedder(dimension=DIMENSION)
    bench = Bench(sqlite_deployment(folder), store=store, embedder=embedder)
    async with bench.deployment.start() as process:
        worker = bench.worker(process, reader=reader)
        for turn, is_pause in zip(turns, pauses, strict=True):
            await process.log.append(turn)
            if is_pause:
                await worker.work_off()
        await worker.work_off()
    memories = await bench.memories()
    contents = {memory.id: memory.content for memory in memories}
    rows = [Row(m.content, m.status, contents.get(m.superseded_by, ""), m.invalid_at) for m in memories]
    return sorted(rows, key=lambda row: (row.content, row.status))


async def in_all_orders(folder: Path, statements: Sequence[str], reader: StatementReader) -> list[list[Row]]:
    """First as it was said, then in other orders."""
    turns = said(statements)
    found = [await learnt(folder / "as said", turns, reader, [True] * len(turns))]
    for seed in range(ORDERS):
        chance = random.Random(seed)
        pause = chance.choice((0.0, 0.1, 0.5, 1.0))
        pauses = [chance.random() < pause for _ in turns]
        order = turns if seed % 5 == 0 else shuffled(turns, chance)
        found.append(await learnt(folder / str(seed), order, reader, pauses))
    return found


async def test_what_supersedes_what_and_when_does_not_depend_on_windows_or_order(tmp_path: Path) -> None:
    as_said, *others = await in_all_orders(tmp_path, PLAIN, PlainReader(MOVES))
    assert {row.content for row in as_said if row.status is MemoryStatus.SUPERSEDED} >= {*APPOINTMENTS[:3], PLAIN[0]}
    assert others == [as_said] * ORDERS


async def test_what_counts_does_not_depend_on_windows_or_order_where_statements_come_again(tmp_path: Path) -> None:
    """What was said, was replaced and is said again stands as two rows where both times were learnt as they came."""
    as_said, *others = await in_all_orders(tmp_path, REPEATED, PlainReader(MOVES))
    active, *others_active = (
        [row.content for row in rows if row.status is MemoryStatus.ACTIVE] for rows in (as_said, *others)
    )
    assert others_active == [active] * ORDERS
