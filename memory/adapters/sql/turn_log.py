"""The turn log in SQL: implements the port with jobs on one database (`database`, `turns_queue`).

No SQL beyond one row here, no rules of the queue, no threads. A turn counts from its
arrival (the clock at the call), not from its own time, which may be years ago.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from functools import partial

from memory.adapters.pages import paged
from memory.adapters.sql import branch_positions, ledger, turn_effects, turns_queue, turns_upkeep
from memory.adapters.sql.conversation_trees import SqlConversationTrees
from memory.adapters.sql.database import DatedOnDatabase, SqlDatabase, reading, reads, writes, writing
from memory.adapters.sql.record_copies import SqlRecordCopies
from memory.adapters.sql.recorded_messages import SqlRecordedMessages
from memory.adapters.sql.recording_times import SqlRecordingTimes
from memory.adapters.sql.requests_by_name import SqlResponseChains
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.turns_queue import LeaseOwner, insert_turn, stage_of
from memory.adapters.sql.turns_rows import ANSWER_BYTES_MAX, cut, to_bytes, turn_of
from memory.errors import BadInput, Unavailable
from memory.model import Turn, TurnStatus
from memory.ports import (
    Backlog,
    Clock,
    ConversationTrees,
    LearnDue,
    Lease,
    RecordCopies,
    RecordedMessages,
    RecordingTimes,
    RemovedWords,
)

SQL = statements("turn_log")

PAGE_TURNS = 50  # read at a time from the record; a turn may have 2 MiB


class SqlTurnLog(DatedOnDatabase):
    """`memory.ports.TurnLog` in an open `SqlDatabase`, which may be shared with a ledger."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        super().__init__(database, clock=clock)
        self.chains = SqlResponseChains(database)
        self.messages: RecordedMessages = SqlRecordedMessages(database, clock=clock)
        self.copies: RecordCopies = SqlRecordCopies(database, clock=clock)
        self.removed_words: RemovedWords = turn_effects.SqlRemovedWords(database)
        self.times: RecordingTimes = SqlRecordingTimes(database, clock=clock)
        self.trees: ConversationTrees = SqlConversationTrees(database, clock=clock)

    # Recording

    async def open(self, turn: Turn) -> None:
        if turn.status is not TurnStatus.OPENED:
            raise BadInput(f"only a turn of status opened can be opened; this one is {turn.status.value}: append it")
        await self._insert(turn, now=self._clock(), owner=self._database.owners.name)

    async def finish(
        self, turn_id: str, *, status: TurnStatus, answer: str, answered_at: float, receipt_id: str = ""
    ) -> None:
        if status is TurnStatus.OPENED:
            raise BadInput("a turn cannot finish as opened: say how it ended")
        await self._finish(turn_id, _Ending(status, answer, answered_at, receipt_id), now=self._clock())

    async def append(self, turn: Turn) -> None:
        if turn.status is TurnStatus.OPENED:
            raise BadInput("a turn to append must have ended: give it the status closed, failed, aborted or unknown")
        await self._insert(turn, now=self._clock(), owner="")

    @writes
    def complete(self, connection: Connection, turn_id: str, *, answer: str, answered_at: float) -> None:
        _complete(connection, turn_id, _Ending(TurnStatus.CLOSED, answer, answered_at), ended_as=TurnStatus.CLOSED)

    _insert = writing(insert_turn)

    @writes
    def _finish(self, connection: Connection, turn_id: str, ending: _Ending, *, now: float) -> None:
        """A turn that was withdrawn meanwhile is completed for the record, and stays withdrawn. One that others made
        unknown gets its answer.
        """
        row = SQL.opened_turn(connection, turn_id=turn_id).fetchone()
        if row is None:
            if ending.status is TurnStatus.CLOSED:
                _complete(connection, turn_id, ending, ended_as=TurnStatus.UNKNOWN)
            return
        seq, user_id, session_id, stage = row
        stage = stage_of(ending.status) if stage == "open" else stage
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
            branch_positions.answered(connection, turn_id, user_id, at=ending.answered_at)

    # Leases

    async def recover(self) -> int:
        now = self._clock()
        dead, has_stale_locks = await self._find_dead(now=now)
        if not dead and not has_stale_locks:
            return 0
        found = await self._release(dead, now=now)
        await asyncio.to_thread(self._database.owners.forget, dead)
        return found

    async def lease(self, *, now: float, seconds: float, due: LearnDue) -> Lease | None:
        """Checks with a read first: polling costs no transaction, and may be done every 50 ms."""
        if await self._find_due(now=now, due=due) is None:
            return None
        owner = LeaseOwner(secrets.token_hex(16), self._database.owners.name, now + seconds)
        try:
            return await self._take(now=now, due=due, owner=owner)
        except (asyncio.CancelledError, Unavailable):  # the lease may exist by now without its caller knowing
            self._database.post(partial(turns_queue.take_back, token=owner.token))
            raise

    extend = writing(turns_queue.extend)
    save_plan = writing(turns_queue.save_plan)
    acknowledge = writing(turns_queue.acknowledge)
    retry_at = writing(turns_queue.retry_at)
    move_to_dead_letters = writing(turns_queue.move_to_dead_letters)
    _find_due = reading(turns_queue.find_due)
    _take = writing(turns_queue.take)

    @reads
    def _find_dead(self, connection: Connection, *, now: float) -> tuple[list[str], bool]:
        """Read the holders first, then who lives: nobody holds anything before being visibly alive."""
        suspects = turns_upkeep.holders(connection) | ledger.holders(connection)
        has_stale_locks = ledger.has_expired(connection, now=now)
        return self._database.owners.find_dead(connection, suspects), has_stale_locks

    @writes
    def _release(self, connection: Connection, dead: Collection[str], *, now: float) -> int:
        ledger.repair(connection, dead, now=now)
        return turns_upkeep.release_dead(connection, dead, now=now)

    # Triage

    async def backlog(self, user_id: str, *, session_id: str = "", opened_before: float) -> Backlog:
        return await self._backlog(user_id, session_id, opened_before=opened_before, now=self._clock())

    unexamined = reading(turns_upkeep.unexamined)
    make_due_now = writing(turns_upkeep.make_due_now)
    depth = reading(turns_upkeep.depth)
    dead_letters = reading(turns_upkeep.dead_letters)
    replay = writing(turns_upkeep.replay)
    drop = writing(turns_upkeep.drop)
    mark = writing(turns_upkeep.mark)
    shed = writing(turns_upkeep.shed)
    _backlog = reading(turns_upkeep.backlog)

    # The record

    def turns(self, user_id: str, *, session_id: str = "") -> AsyncIterator[Turn]:
        return paged(partial(self._page, user_id, session_id), size=PAGE_TURNS)

    context = reading(turns_upkeep.context)
    failed_turns = reading(turns_upkeep.failed_turns)
    mark_forget_requests = writing(turns_upkeep.mark_forget_requests)
    forget_requests_for = reading(turns_upkeep.forget_requests_for)
    withdraw = writing(turns_upkeep.withdraw)

    @reads
    def _page(self, connection: Connection, user_id: str, session_id: str, after: int) -> list[tuple[int, Turn]]:
        rows = SQL.turns_after(connection, user_id=user_id, after=after, session_id=session_id, page_turns=PAGE_TURNS)
        return [(row[0], turn_of(row)) for row in rows]


@dataclass(frozen=True, slots=True)
class _Ending:
    status: TurnStatus
    answer: str
    answered_at: float
    receipt_id: str = ""

    @property
    def stored_answer(self) -> bytes:
        return cut(to_bytes(self.answer), ANSWER_BYTES_MAX)


def _complete(connection: Connection, turn_id: str, ending: _Ending, *, ended_as: TurnStatus) -> None:
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
