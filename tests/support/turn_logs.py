"""Turn logs and ledgers to run the contract suites on, and small makers of turns.

A deployment is one place where turns are kept; each of its processes has a log and a ledger of its own on it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from postgres_server import ROLE, postgres_server

from memory.adapters.sql.chat_states import SqlChatStates
from memory.adapters.sql.erased_users import SqlOptOuts
from memory.adapters.sql.erasures import SqlErasures, SqlWriteBarrier
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.model_capabilities import SqlExamResults, SqlModelCapabilities
from memory.adapters.sql.notes import NoteLimits, SqlCompactedStates, SqlNoteBook
from memory.adapters.sql.postgres_database import PostgresDatabase
from memory.adapters.sql.postgres_pool import PostgresAddress
from memory.adapters.sql.profiles import SqlProfiles
from memory.adapters.sql.projects import SqlProjects
from memory.adapters.sql.receipts import ReceiptLimits, SqlHoldoutRecord, SqlReceipts
from memory.adapters.sql.requests_by_name import SqlIdempotencyKeys
from memory.adapters.sql.session_summaries import SqlSummaries
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.adapters.sql.upkeep import SqlUpkeepSchedule, SqlUsageCounts
from memory.model import Message, PastNote, Scope, Turn, TurnStatus
from memory.ports import LearnDue, Lease, RequestStores, TurnLog

START = 1_700_000_000.0  # Unix seconds; what the manual clock shows first
AT_ONCE = LearnDue()
LEASE_SECONDS = 30.0
LOCK_WAIT_SECONDS = 3.0  # only a test that waits in vain gets to it, and sets a shorter one


class ManualClock:
    """Goes on when told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class Process:
    """What one process of a deployment holds. Leaving it with turns still open is what its death looks like."""

    log: SqlTurnLog
    ledger: SqlUserLedger
    notes: SqlNoteBook
    receipts: SqlReceipts
    usage_counts: SqlUsageCounts
    profiles: SqlProfiles
    summaries: SqlSummaries
    opt_outs: SqlOptOuts
    barrier: SqlWriteBarrier
    projects: SqlProjects
    erasures: SqlErasures
    states: SqlCompactedStates
    capabilities: SqlModelCapabilities
    exams: SqlExamResults
    keys: SqlIdempotencyKeys
    upkeep: SqlUpkeepSchedule
    holdouts: SqlHoldoutRecord
    chat_states: SqlChatStates

    @property
    def stores(self) -> RequestStores:
        return RequestStores(
            *(self.notes, self.receipts, self.usage_counts, self.profiles, self.states, self.summaries),
            *(self.keys, self.opt_outs, self.erasures, self.projects, self.chat_states),
        )


@dataclass(slots=True)
class Bounds:
    """Of what a process keeps, and of its wait for a user's lock."""

    notes: NoteLimits = field(default_factory=NoteLimits)
    receipts: ReceiptLimits = field(default_factory=ReceiptLimits)
    lock_wait_seconds: float = LOCK_WAIT_SECONDS


class WrittenNotes(SqlNoteBook):
    """A note book whose notes are written when `keep` returns, as if their turns had ended."""

    async def keep(self, user_id: str, key: str, note: PastNote, *, made_at: float) -> None:
        await super().keep(user_id, key, note, made_at=made_at)
        await self._database.write(lambda _: None)


@dataclass(slots=True)
class Deployment:
    """`start` gives one more process on the same turns. `folder`: where they are kept, with others' before them.

    `places_with`: the tables that hold a text. `bounds` hold for what is started after they were set.
    """

    database: Callable[[], SqliteDatabase | PostgresDatabase]
    folder: Path
    places_with: Callable[[str], list[str]]
    clock: ManualClock = field(default_factory=ManualClock)
    bounds: Bounds = field(default_factory=Bounds)

    @asynccontextmanager
    async def start(self) -> AsyncIterator[Process]:
        """On a database of its own."""
        clock, bounds = self.clock, self.bounds
        async with self.database() as database:
            log, notes = SqlTurnLog(database, clock=clock), WrittenNotes(database, limits=bounds.notes)
            yield Process(
                log,
                SqlUserLedger(database, clock=clock, wait_seconds=bounds.lock_wait_seconds),
                notes,
                SqlReceipts(database, clock=clock, redact=str, limits=bounds.receipts),
                SqlUsageCounts(database),
                SqlProfiles(database),
                SqlSummaries(database, origin="a model"),
                SqlOptOuts(database),
                SqlWriteBarrier(database, clock=clock),
                SqlProjects(database),
                SqlErasures(database),
                SqlCompactedStates(database),
                SqlModelCapabilities(database, clock=clock),
                SqlExamResults(database, clock=clock),
                SqlIdempotencyKeys(database),
                SqlUpkeepSchedule(database),
                SqlHoldoutRecord(database),
                SqlChatStates(database, notes, log.chains, clock),
            )


def sqlite_deployment(folder: Path) -> Deployment:
    def tables_with(text: str) -> list[str]:
        with closing(sqlite3.connect(next(folder.glob("*.sqlite")))) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return [name for name in names if text in repr(connection.execute(f'SELECT * FROM "{name}"').fetchall())]

    return Deployment(lambda: SqliteDatabase(folder / "turns.sqlite"), folder, tables_with)


def postgres_deployment(_: Path) -> Deployment:
    """On an empty database."""
    server = postgres_server()
    server.empty()
    address = PostgresAddress(server.url, ROLE)
    return Deployment(lambda: PostgresDatabase(address), server.folder, server.tables_with)


DEPLOYMENTS = {"sqlite": sqlite_deployment, "postgres": postgres_deployment}  # the suites run on each


def adapters() -> list[ParameterSet]:
    """The names of `DEPLOYMENTS` as parameters of a test: SQLite in the first tier, PostgreSQL in `make test-all`."""
    on_server = pytest.mark.full("the same suite runs on SQLite in the first tier")
    return [pytest.param(name, marks=() if name == "sqlite" else on_server) for name in DEPLOYMENTS]


def deployment_on(name: str, folder: Path) -> Deployment:
    """`name`: one of those that `adapters` gives."""
    return DEPLOYMENTS[name](folder)


def a_turn(
    turn_id: str,
    *,
    user: str = "ann",
    session: str = "s1",
    project: str = "",
    status: TurnStatus = TurnStatus.OPENED,
    at: float = START,
    text: str = "",
) -> Turn:
    return Turn(
        id=turn_id,
        scope=Scope(user, project_id=project, session_id=session),
        at=at,
        messages=(Message("user", text or f"words of {turn_id}"),),
        status=status,
    )


async def tell(log: TurnLog, turn_id: str, *, status: TurnStatus = TurnStatus.CLOSED, **of: Any) -> None:
    """A whole turn, `of` which `a_turn` says more: opened and finished."""
    answer = of.pop("answer", f"answer to {turn_id}")
    await log.open(a_turn(turn_id, **of))
    await log.finish(turn_id, status=status, answer=answer, answered_at=START + 1)


async def lease_at(log: TurnLog, now: float, due: LearnDue = AT_ONCE) -> Lease | None:
    return await log.lease(now=now, seconds=LEASE_SECONDS, due=due)


async def leased(log: TurnLog, now: float = START, due: LearnDue = AT_ONCE) -> Lease:
    """As `lease_at`, where something is due."""
    lease = await lease_at(log, now, due)
    assert lease is not None
    return lease


async def windows(log: TurnLog, now: float = START, due: LearnDue = AT_ONCE) -> list[list[str]]:
    """All that is due then, leased and learnt."""
    found = []
    while (lease := await lease_at(log, now, due)) is not None:
        found.append(ids_of(lease))
        await log.acknowledge(lease)
    return found


def ids_of(lease: Lease | None) -> list[str]:
    """The turns of a lease by id; none without a lease."""
    return [] if lease is None else [turn.id for turn in lease.turns]
