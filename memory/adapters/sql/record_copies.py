"""Copies of the conversation record in SQL, out of the turn log's database and into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from memory.adapters.pages import paged
from memory.adapters.sql import known_exchanges, recorded_messages
from memory.adapters.sql.database import DatedOnDatabase, reading, reads, writes
from memory.adapters.sql.recorded_rows import message_of
from memory.adapters.sql.statements import Connection, listed, statements
from memory.adapters.sql.turns_queue import TAUGHT, insert_turn, make_ready
from memory.adapters.sql.turns_rows import turn_of
from memory.adapters.well_formed import well_formed
from memory.model import Message, RecordedMessage, Turn, TurnStatus
from memory.model.recorded import ID_OF_TURN
from memory.model.turns import Learning, TurnCopy, copied_turn_id

SQL = statements("record_copies")

PAGE_ROWS = 50  # of at most 2 MiB each
_LEARNING = {"learnt": Learning.LEARNT} | dict.fromkeys(("open", "ready", "window", "held"), Learning.DUE)


def own_turns(connection: Connection, user_id: str, turn_ids: Collection[str]) -> frozenset[str]:
    return frozenset(SQL.turns_among.column(connection, user_id=user_id, turn_ids=listed(sorted(turn_ids))))


class SqlRecordCopies(DatedOnDatabase):
    def turns(self, user_id: str) -> AsyncIterator[TurnCopy]:
        return paged(partial(self._turns, user_id), size=PAGE_ROWS)

    def messages(self, user_id: str) -> AsyncIterator[RecordedMessage]:
        return paged(partial(self._messages, user_id), size=PAGE_ROWS)

    @reads
    def _turns(self, connection: Connection, user_id: str, after: int) -> list[tuple[int, TurnCopy]]:
        rows = SQL.turns_after(connection, user_id=user_id, after=after, page_rows=PAGE_ROWS)
        return [(row[3], _copy_of(row)) for row in rows]

    @reads
    def _messages(self, connection: Connection, user_id: str, after: int) -> list[tuple[int, RecordedMessage]]:
        rows = SQL.messages_after(connection, user_id=user_id, after=after, page_rows=PAGE_ROWS)
        return [(row[-1], _plain_message(message_of(row))) for row in rows]

    @writes
    def add_turns(self, connection: Connection, user_id: str, copies: Sequence[TurnCopy]) -> int:
        now = self._clock()
        return sum(_add_turn(connection, copy, user_id, now) for copy in copies)

    @writes
    def release(self, connection: Connection, user_id: str, turn_ids: Collection[str]) -> None:
        ids = listed([*turn_ids, *(copied_turn_id(user_id, turn_id) for turn_id in turn_ids)])
        for seq, session_id in SQL.release(connection, user_id=user_id, turn_ids=ids).fetchall():
            make_ready(connection, seq, user_id, session_id, self._clock())

    own_turns = reading(own_turns)

    @writes
    def add_messages(self, connection: Connection, user_id: str, messages: Sequence[RecordedMessage]) -> int:
        placed = [placed for message in messages if (placed := _placed(connection, message, user_id)) is not None]
        return recorded_messages.add(connection, user_id, placed, now=self._clock())


def _copy_of(row: Sequence[Any]) -> TurnCopy:
    stage, is_left_out, is_order, *turn = row
    learning = _LEARNING.get(stage, Learning.NEVER)
    return TurnCopy(_plain_turn(turn_of(tuple(turn))), learning, not is_left_out, bool(is_order))


def _add_turn(connection: Connection, copy: TurnCopy, user_id: str, now: float) -> bool:
    ids = (copy.turn.id, copied_turn_id(user_id, copy.turn.id))
    turn = replace(copy.turn, id=ids[1], scope=replace(copy.turn.scope, user_id=user_id), receipt_id="")
    recorded = (known_exchanges.was_recorded(connection, replace(turn, id=one)) for one in ids)
    is_due = copy.learning is Learning.DUE and turn.status in TAUGHT
    if own_turns(connection, user_id, ids) or any(recorded):
        return False
    due = "held" if copy.is_held else "ready"
    stage = due if is_due else "learnt" if copy.learning is Learning.LEARNT else "nothing"
    insert_turn(connection, turn, now=now, owner="", stage=stage)
    if copy.is_order:
        SQL.mark_order(connection, id=turn.id)
    if not copy.in_summaries:
        SQL.insert_left_out(connection, id=turn.id, user_id=turn.scope.user_id, session_id=turn.scope.session_id)
    return True


def _placed(connection: Connection, message: RecordedMessage, user_id: str) -> RecordedMessage | None:
    """With the id and the position of its turn here; None without that turn."""
    if not message.turn_id:
        return message
    for turn_id in (message.turn_id, copied_turn_id(user_id, message.turn_id)):
        row = SQL.seq_of_turn(connection, turn_id=turn_id, user_id=user_id).fetchone()
        if row is not None:
            part = message.id.removeprefix(f"{ID_OF_TURN}{message.turn_id}")
            return replace(message, id=f"{ID_OF_TURN}{turn_id}{part}", turn_id=turn_id, seq=row[0])
    return None


def _plain_turn(turn: Turn) -> Turn:
    """For another system: without a receipt, in valid UTF-8; a reply that is being streamed is left out."""
    messages = tuple(Message(one.role, well_formed(one.content), one.is_tool_traffic) for one in turn.messages)
    status = TurnStatus.UNKNOWN if turn.status is TurnStatus.OPENED else turn.status
    return replace(
        turn,
        messages=messages,
        status=status,
        receipt_id="",
        answer=well_formed(turn.answer),
        model=well_formed(turn.model),
        trace_id=well_formed(turn.trace_id),
    )


def _plain_message(message: RecordedMessage) -> RecordedMessage:
    return replace(
        message,
        content=well_formed(message.content),
        trace_id=well_formed(message.trace_id),
        source=replace(message.source, name=well_formed(message.source.name)),
        target=replace(message.target, name=well_formed(message.target.name)),
    )
