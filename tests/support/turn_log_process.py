"""A process of its own that works on a turn log, for tests that kill it: `python turn_log_process.py TASK FILE NAME`.

It says on stdout what has returned, one line each, so the test knows what must have survived.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.model import Message, Scope, Turn, TurnStatus
from memory.ports import LearnDue

NOW = 1_700_000_000.0
TURNS = 60


def say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def a_turn(turn_id: str, user: str, status: TurnStatus = TurnStatus.OPENED) -> Turn:
    return Turn(turn_id, Scope(user, session_id="s"), NOW, (Message("user", f"words of {turn_id}"),), status=status)


async def chat(log: SqlTurnLog, name: str) -> None:
    """Every second turn ends; then wait to be killed."""
    for number in range(TURNS):
        turn_id = f"{name}-{number}"
        await log.open(a_turn(turn_id, name))
        say("opened", turn_id)
        if number % 2:
            await log.finish(turn_id, status=TurnStatus.CLOSED, answer="yes", answered_at=NOW)
            say("closed", turn_id)
    await asyncio.sleep(60)


async def append(log: SqlTurnLog, name: str) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(TURNS):
            group.create_task(log.append(a_turn(f"{name}-{number}", f"user-{number % 7}", TurnStatus.CLOSED)))
    say("done")


async def learn(log: SqlTurnLog) -> None:
    """Until there is nothing left for anybody."""
    while True:
        lease = await log.lease(now=NOW, seconds=1000, due=LearnDue(batch_turns_max=3))
        if lease is not None:
            say("learnt", *(turn.id for turn in lease.turns))
            await log.acknowledge(lease)
            continue
        depth = await log.depth(now=NOW)
        if depth.due + depth.leased == 0:
            return
        await asyncio.sleep(0.005)


async def hold(log: SqlTurnLog, ledger: SqlUserLedger) -> None:
    """Take a lease and the user's lock, then wait to be killed."""
    lease = await log.lease(now=NOW, seconds=1000, due=LearnDue())
    assert lease is not None
    async with ledger.write(lease.user_id):
        await log.save_plan(lease, b"plan")
        say("holding", lease.window_id)
        await asyncio.sleep(60)


async def main(task: str, path: Path, name: str) -> None:
    async with SqliteDatabase(path) as database:
        log = SqlTurnLog(database, clock=lambda: NOW)
        work = {
            "chat": lambda: chat(log, name),
            "append": lambda: append(log, name),
            "learn": lambda: learn(log),
            "hold": lambda: hold(log, SqlUserLedger(database, clock=lambda: NOW)),
        }
        await work[task]()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
