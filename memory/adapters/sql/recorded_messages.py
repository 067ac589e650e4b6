"""The messages of the conversation record in SQL: implements the port with jobs on the turn log's database.

Changes of a whole conversation are split into short transactions, so that the writers of other processes get their
turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from memory.adapters.sql import recorded_changes, recorded_rows
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.jobs import OnDatabase, reading, writes, writing
from memory.adapters.sql.statements import Connection
from memory.model import MessageDirection, MessageFilter, PartyType, RecordedMessage, ToolMessage
from memory.model.recorded import shortened
from memory.ports import Clock, Trimming
from memory.ports.paging import all_pages

PAGE_MESSAGES = 500  # read at a time for a change of a whole conversation
CHANGES_PER_WRITE = 100  # turns or messages changed in one step


class SqlRecordedMessages(OnDatabase):
    """`memory.ports.RecordedMessages` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        super().__init__(database)
        self._clock = clock

    page = reading(recorded_rows.page)
    find = reading(recorded_rows.find)
    sessions = reading(recorded_rows.sessions)
    session = reading(recorded_rows.session)
    turn_ids = reading(recorded_rows.turn_ids)
    abandoned = reading(recorded_rows.abandoned)
    receipt_ids = reading(recorded_rows.receipt_ids)
    of_receipt = reading(recorded_rows.of_receipt)
    delete_added = writing(recorded_changes.delete_added)
    _delete_turns = writing(recorded_changes.delete_turns)
    _delete_messages = writing(recorded_changes.delete_messages)
    _erase = writing(recorded_changes.erase)
    _rewrite_outputs = writing(recorded_changes.rewrite_outputs)

    @writes
    def add(self, connection: Connection, user_id: str, messages: Sequence[RecordedMessage]) -> None:
        recorded_changes.add(connection, user_id, messages, now=self._clock())

    @writes
    def add_tool_messages(
        self, connection: Connection, turn_id: str, messages: Sequence[ToolMessage], *, at: float
    ) -> None:
        recorded_changes.add_tool_messages(connection, turn_id, messages, at=at, now=self._clock())

    async def delete_message(self, user_id: str, message_id: str) -> bool:
        return await self._delete_messages(user_id, [message_id], only_learnt=False) > 0

    async def delete_turns(self, user_id: str, turn_ids: Collection[str]) -> int:
        return sum([await self._delete_turns(user_id, batch) for batch in _batches(list(turn_ids))])

    async def erase(self, user_id: str, *, project_id: str = "", before: float) -> int:
        erased = 0
        while found := await self._erase(user_id, project_id, before=before, limit=CHANGES_PER_WRITE):
            erased += found
        return erased

    async def trim(self, trimming: Trimming) -> int:
        older, user_id = await self._older(trimming, lambda _: True), trimming.user_id
        return sum([await self._delete_messages(user_id, batch, only_learnt=True) for batch in _batches(older)])

    async def compress(self, trimming: Trimming, *, characters_max: int) -> int:
        def shorten(text: str) -> str:
            return shortened(text, characters_max=characters_max)

        older = await self._older(
            trimming, lambda message: _is_output(message) and len(message.content) > characters_max
        )
        return sum([await self._rewrite_outputs(trimming.user_id, batch, shorten) for batch in _batches(older)])

    @writes
    def expire(self, connection: Connection, *, before: float, limit: int) -> int:
        return recorded_changes.expire(connection, before=before, limit=limit, now=self._clock())

    async def _older(self, trimming: Trimming, admits: Callable[[RecordedMessage], bool]) -> list[str]:
        """The ids of all but the last `keep_last` messages, of those that `admits` accepts."""
        where = MessageFilter(trimming.user_id, trimming.conversation_id)
        pages = all_pages(lambda cursor: self.page(where, limit=PAGE_MESSAGES, cursor=cursor))
        found = [(message.id, admits(message)) async for page in pages for message in page.messages]
        older = found[: max(0, len(found) - trimming.keep_last)]
        return [message_id for message_id, is_admitted in older if is_admitted]


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + CHANGES_PER_WRITE] for start in range(0, len(ids), CHANGES_PER_WRITE))


def _is_output(message: RecordedMessage) -> bool:
    return message.direction is MessageDirection.OUTPUT or message.source.type is PartyType.TOOL
