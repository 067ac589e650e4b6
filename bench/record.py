"""Measures reading of the conversation record: pages, search for words, and the list of sessions.

`python bench/record.py [TURNS]`: one user with so many turns, as long as LongMemEval's, in sessions of 20, in a turn
log of its own; another user with as many. Times are milliseconds; a search reads to the end of the record, by as many
calls as it takes.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from report import Bar, Report, Sheet, bench_parser
from turns import exchanges

from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.model import Message, MessageFilter, Scope, Turn, TurnStatus
from memory.ports import RecordedMessages
from memory.ports.paging import all_pages

TURNS = 10_000
TURNS_PER_SESSION = 20
ROUNDS = 5
USERS = ("ann", "bob")
START = 1_700_000_000.0
PAGE = 100
BARS = (
    Bar("a page of one conversation", "ms", at_most=50),
    Bar("a page of the whole record", "ms", at_most=500),
    Bar("a page of sessions", "ms", at_most=500),
    Bar("a search of the whole record", "ms", at_most=5_000),
)


async def main() -> int:
    parser = bench_parser("record", __doc__)
    parser.add_argument("turns", nargs="?", type=int, default=TURNS)
    options = parser.parse_args()
    report = Report("record", BARS, options.json)
    with tempfile.TemporaryDirectory(prefix="memproxy-") as folder:
        async with SqliteDatabase(Path(folder) / "turns.sqlite") as database:
            log = SqlTurnLog(database, clock=lambda: START)
            for user in USERS:
                await fill(log, user, options.turns)
            took = await measured(log.messages)
    sheet = Sheet(f"reading a record of {options.turns:,} turns", ("what", "ms"), list(took.items()))
    return report.finish({"turns": options.turns, "ms": took}, [sheet], took)


async def fill(log: SqlTurnLog, user: str, count: int) -> None:
    said = exchanges(min(count, 500))
    turns = [
        Turn(
            id=f"{user}-{n}",
            scope=Scope(user, session_id=f"s{n // TURNS_PER_SESSION}"),
            at=START + n * 60,
            messages=(Message("user", said[n % len(said)][0]),),
            status=TurnStatus.CLOSED,
            answer=said[n % len(said)][1],
            answered_at=START + n * 60 + 5,
        )
        for n in range(count)
    ]
    for start in range(0, count, PAGE):
        await asyncio.gather(*map(log.append, turns[start : start + PAGE]))


async def measured(record: RecordedMessages) -> dict[str, float]:
    """Medians."""
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "a page of one conversation": partial(record.page, MessageFilter("ann", "s1"), limit=PAGE),
        "a page of the whole record": partial(record.page, MessageFilter("ann"), limit=PAGE),
        "a page of sessions": partial(record.sessions, "ann", limit=PAGE),
        "a search of the whole record": partial(searched, record, "nosuchword"),
    }
    return {name: statistics.median([await milliseconds(call) for _ in range(ROUNDS)]) for name, call in calls.items()}


async def searched(record: RecordedMessages, word: str) -> None:
    where = MessageFilter("ann", words=(word,))
    async for page in all_pages(lambda cursor: record.page(where, limit=PAGE, cursor=cursor)):
        assert not page.items, "nobody said this"


async def milliseconds(call: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await call()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
