"""The turn log in SQL: implements the port with jobs on one database (`database`, `turns_queue`).

This module only turns calls into jobs: no SQL beyond one row, no rules of the queue, no threads. A turn counts from its
arrival (the clock at the call), not from its own time, which may be years ago.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from functools import partial

from memory.adapters.sql import branch_shifts, ledger, turn_effects, turns_queue, turns_triggers, turns_upkeep
from memory.adapters.sql.chains import SqlResponseChains
from memory.adapters.sql.conversation_trees import SqlConversationTrees
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.record_copies import SqlRecordCopies
from memory.adapters.sql.recorded_messages import SqlRecordedMessages
from memory.adapters.sql.recording_times import SqlRecordingTimes
from memory.adapters.sql.removed_words import SqlRemovedWords
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.turns_opening import insert_turn
from memory.adapters.sql.turns_rows import turn_of
from memory.adapters.turn_rules import LeaseOwner, stage_after
from memory.adapters.turn_texts import ANSWER_BYTES_MAX, cut, to_bytes
from memory.errors import BadInput, Unavailable
from memory.model import Turn, TurnStatus, Urgency
from memory.ports import (
    Backlog,
    Clock,
    ConversationTrees,
    DeadLetter,
    ForgetRequestTurn,
    FreshTurn,
    LearnDue,
    Lease,
    QueueDepth,
    RecordCopies,
    RecordedMessages,
    RecordingTimes,
    RemovedWords,
)

SQL = statements("turn_log")

PAGE_TURNS = 50  # read at a time from the record; a turn may have 2 MiB


class SqlTurnLog:
    """`memory.ports.TurnLog` in an open `SqlDatabase`, which may be shared with a ledger. Local disk only."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.chains = SqlResponseChains(database)
        self.messages: RecordedMessages = SqlRecordedMessages(database, clock=clock)
        self.copies: RecordCopies = SqlRecordCopies(database, clock=clock)
        self.removed_words: RemovedWords = SqlRemovedWords(database)
        self.times: RecordingTimes = SqlRecordingTimes(database, clock=clock)
        self.trees: ConversationTrees = SqlConversationTrees(database, clock=clock)

    async def open(self, turn: Turn) -> None:
        if turn.status is not TurnStatus.OPENED:
            raise BadInput(f"only a turn of status opened can be opened; this one is {turn.status.value}: append it")
        await self._database.write(partial(insert_turn, turn=turn, now=self._clock(), owner=self._database.owners.name))

    async def finish(
        self, turn_id: str, *, status: TurnStatus, answer: str, answered_at: float, receipt_id: str = ""
    ) -> None:
        if status is TurnStatus.OPENED:
            raise BadInput("a turn cannot finish as opened: say how it ended")
        ending = _Ending(status, answer, answered_at, receipt_id)
        await self._database.write(partial(_finish, turn_id=turn_id, ending=ending, now=self._clock()))

    async def complete(self, turn_id: str, *, answer: str, answered_at: float) -> None:
        ending = _Ending(TurnStatus.CLOSED, answer, answered_at)
        await self._database.write(partial(_complete, turn_id=turn_id, ending=ending, ended_as=TurnStatus.CLOSED))

    async def append(self, turn: Turn) -> None:
        if turn.status is TurnStatus.OPENED:
            raise BadInput("a turn to append must have ended: give it the status closed, failed, aborted or unknown")
        await self._database.write(partial(insert_turn, turn=turn, now=self._clock(), owner=""))

    async def recover(self) -> int:
        """Also ends leases and frees users' locks of dead processes."""
        now = self._clock()
        dead, has_stale_locks = await self._database.read(partial(self._find_dead, now=now))
        if not dead and not has_stale_locks:
            return 0
        found = await self._database.write(partial(_release, dead=dead, now=now))
        await asyncio.to_thread(self._database.owners.forget, dead)
        return found

    async def lease(self, *, now: float, seconds: float, due: LearnDue) -> Lease | None:
        """Checks with a read first: polling costs no transaction, and may be done every 50 ms."""
        if await self._database.read(partial(turns_queue.find_due, now=now, due=due)) is None:
            return None
        owner = LeaseOwner(secrets.token_hex(16), self._database.owners.name, now + seconds)
        try:
            return await self._database.write(partial(turns_queue.take, now=now, due=due, owner=owner))
        except (asyncio.CancelledError, Unavailable):  # the lease may exist by now without its caller knowing
            self._database.post(partial(turns_queue.take_back, token=owner.token))
            raise

    async def unexamined(self, *, limit: int) -> list[FreshTurn]:
        return await self._database.read(partial(turns_triggers.unexamined, limit=limit))

    async def mark(self, urgencies: Mapping[str, Urgency]) -> None:
        if urgencies:
            await self._database.write(partial(turns_triggers.mark, urgencies=urgencies))

    async def shed(self, *, now: float, keep: int, window_turns: int) -> int:
        """Checks with a read first, so that a short queue costs no transaction."""
        if await self._database.read(turns_triggers.waiting) <= keep:
            return 0
        return await self._database.write(partial(turns_triggers.shed, now=now, keep=keep, window_turns=window_turns))

    async def context(self, lease: Lease, *, limit: int) -> list[Turn]:
        return await self._database.read(partial(turns_triggers.context, lease=lease, limit=limit))

    async def failed_turns(self, lease: Lease, *, limit: int) -> list[Turn]:
        return await self._database.read(partial(turns_triggers.failed_turns, lease=lease, limit=limit))

    async def mark_forget_requests(self, lease: Lease, claims: Mapping[str, bytes]) -> None:
        await self._database.write(partial(turns_triggers.mark_forget_requests, lease=lease, claims=claims))

    async def forget_requests_after(self, lease: Lease, *, limit: int) -> list[ForgetRequestTurn]:
        return await self._database.read(partial(turns_triggers.forget_requests_after, lease=lease, limit=limit))

    async def extend(self, lease: Lease, *, until: float) -> None:
        await self._database.write(partial(turns_queue.extend, lease=lease, until=until))

    async def save_plan(self, lease: Lease, plan: bytes) -> None:
        await self._database.write(partial(turns_queue.save_plan, lease=lease, plan=plan))

    async def acknowledge(self, lease: Lease) -> None:
        await self._database.write(partial(turns_queue.acknowledge, lease=lease))

    async def retry_at(self, lease: Lease, *, due_at: float, reason: str, outage_since: float | None = None) -> None:
        job = partial(turns_queue.give_back, lease=lease, due_at=due_at, reason=reason, outage_since=outage_since)
        await self._database.write(job)

    async def move_to_dead_letters(self, lease: Lease, *, now: float, reason: str) -> None:
        await self._database.write(partial(turns_queue.move_to_dead_letters, lease=lease, now=now, reason=reason))

    async def dead_letters(self, *, limit: int) -> list[DeadLetter]:
        return await self._database.read(partial(turns_upkeep.dead_letters, limit=limit))

    async def replay(self, window_ids: Collection[str]) -> int:
        return await self._database.write(partial(turns_upkeep.replay, window_ids=window_ids))

    async def drop(self, window_ids: Collection[str]) -> int:
        return await self._database.write(partial(turns_upkeep.drop, window_ids=window_ids))

    async def make_due_now(self, user_id: str, *, session_id: str = "") -> None:
        await self._database.write(partial(turns_upkeep.make_due_now, user_id=user_id, session_id=session_id))

    async def backlog(self, user_id: str, *, session_id: str = "", opened_before: float) -> Backlog:
        count = partial(
            turns_upkeep.backlog,
            user_id=user_id,
            session_id=session_id,
            opened_before=opened_before,
            now=self._clock(),
        )
        return await self._database.read(count)

    async def withdraw(
        self,
        user_id: str,
        *,
        project_id: str = "",
        opened_before: float,
        only: Collection[str] = (),
        spare: Collection[str] = (),
    ) -> int:
        job = partial(
            turns_upkeep.withdraw,
            user_id=user_id,
            project_id=project_id,
            opened_before=opened_before,
            only=only,
            spare=spare,
        )
        return await self._database.write(job)

    async def turns(self, user_id: str, *, session_id: str = "") -> AsyncIterator[Turn]:
        seq = 0
        while True:
            seq, page = await self._database.read(partial(_page, user_id=user_id, session_id=session_id, after=seq))
            for turn in page:
                yield turn
            if len(page) < PAGE_TURNS:
                return

    async def depth(self, *, now: float) -> QueueDepth:
        return await self._database.read(partial(turns_upkeep.depth, now=now))

    def _find_dead(self, connection: Connection, *, now: float) -> tuple[list[str], bool]:
        """Read the holders first, then who lives: nobody holds anything before being visibly alive."""
        suspects = turns_upkeep.holders(connection) | ledger.holders(connection)
        has_stale_locks = ledger.has_expired(connection, now=now)
        return self._database.owners.find_dead(connection, suspects), has_stale_locks


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a reply ended."""

    status: TurnStatus
    answer: str
    answered_at: float
    receipt_id: str = ""

    @property
    def stored_answer(self) -> bytes:
        return cut(to_bytes(self.answer), ANSWER_BYTES_MAX)


def _finish(connection: Connection, *, turn_id: str, ending: _Ending, now: float) -> None:
    """A turn that was withdrawn meanwhile is completed for the record, and stays withdrawn. One that others made
    unknown gets its answer.
    """
    row = SQL.opened_turn(connection, turn_id=turn_id).fetchone()
    if row is None:
        if ending.status is TurnStatus.CLOSED:
            _complete(connection, turn_id=turn_id, ending=ending, ended_as=TurnStatus.UNKNOWN)
        return
    seq, user_id, session_id, stage = row
    stage = stage_after(ending.status) if stage == "open" else stage
    SQL.finish_turn(
        connection,
        status=ending.status.value,
        stage=stage,
        now=now,
        answered_at=ending.answered_at,
        answer=ending.stored_answer,
        receipt_id=to_bytes(ending.receipt_id),
        seq=seq,
    )
    turn_effects.turn_ended(connection, user_id, session_id, at=now)
    if stage == "ready":
        turns_queue.make_ready(connection, seq, user_id, session_id, now)
        branch_shifts.answered(connection, turn_id, user_id, at=ending.answered_at)


def _complete(connection: Connection, *, turn_id: str, ending: _Ending, ended_as: TurnStatus) -> None:
    """Close a turn that ended so, or is unknown, without an answer. While it is ready, the answer counts in the bytes
    of its session. Its branch is not looked at again.
    """
    answer = ending.stored_answer
    row = SQL.complete_turn(
        connection,
        answer=answer,
        answered_at=ending.answered_at,
        receipt_id=to_bytes(ending.receipt_id),
        turn_id=turn_id,
        ended_as=ended_as.value,
    ).fetchone()
    if row is not None and row[2] == "ready":
        SQL.count_answer(connection, size=len(answer), user_id=row[0], session_id=row[1])


def _release(connection: Connection, *, dead: Collection[str], now: float) -> int:
    ledger.repair(connection, dead, now=now)
    return turns_upkeep.release_dead(connection, dead, now=now)


def _page(connection: Connection, *, user_id: str, session_id: str, after: int) -> tuple[int, list[Turn]]:
    rows = SQL.turns_after(
        connection, user_id=user_id, after=after, session_id=session_id, page_turns=PAGE_TURNS
    ).fetchall()
    return (int(rows[-1][0]) if rows else after), [turn_of(row) for row in rows]
