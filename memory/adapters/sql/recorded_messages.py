"""The messages of the conversation record in SQL: implements the port with jobs on the turn log's database.

This module only turns calls into jobs. Changes of a whole conversation are split into short transactions, so that the
writers of other processes get their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from memory.adapters.recorded_rules import CHANGES_PER_WRITE, PAGE_MESSAGES, is_output
from memory.adapters.sql import recorded_changes, recorded_rows
from memory.adapters.sql.database import SqlDatabase
from memory.model import MessageFilter, RecordedMessage, Session, ToolMessage
from memory.model.recorded import AbandonedBranch, part_of, shortened
from memory.ports import Clock, MessagePage, SessionPage, Trimming


class SqlRecordedMessages:
    """`memory.ports.RecordedMessages` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, user_id: str, messages: Sequence[RecordedMessage]) -> None:
        await self._database.write(partial(recorded_changes.add, user_id=user_id, messages=messages, now=self._clock()))

    async def add_tool_messages(self, turn_id: str, messages: Sequence[ToolMessage], *, at: float) -> None:
        job = partial(recorded_changes.add_tool_messages, turn_id=turn_id, messages=messages, at=at, now=self._clock())
        await self._database.write(job)

    async def page(self, where: MessageFilter, *, limit: int, cursor: str = "") -> MessagePage:
        found, next_cursor = await self._database.read(
            partial(recorded_rows.page, where=where, limit=limit, cursor=cursor)
        )
        return MessagePage(tuple(found), next_cursor)

    async def find(self, user_id: str, message_id: str) -> RecordedMessage | None:
        part = part_of(message_id)
        if part is None:
            return await self._database.read(partial(recorded_rows.message, user_id=user_id, message_id=message_id))
        return await self._database.read(partial(recorded_rows.part, user_id=user_id, turn_id=part[0], ordinal=part[1]))

    async def sessions(self, user_id: str, *, limit: int, cursor: str = "") -> SessionPage:
        found, next_cursor = await self._database.read(
            partial(recorded_rows.sessions, user_id=user_id, limit=limit, cursor=cursor)
        )
        return SessionPage(tuple(found), next_cursor)

    async def session(self, user_id: str, conversation_id: str) -> Session | None:
        return await self._database.read(
            partial(recorded_rows.session, user_id=user_id, conversation_id=conversation_id)
        )

    async def turn_ids(self, user_id: str, conversation_id: str) -> list[str]:
        return await self._database.read(
            partial(recorded_rows.turn_ids, user_id=user_id, conversation_id=conversation_id)
        )

    async def abandoned(self, user_id: str, conversation_id: str, *, limit: int) -> list[AbandonedBranch]:
        return await self._database.read(
            partial(recorded_rows.abandoned, user_id=user_id, conversation_id=conversation_id, limit=limit)
        )

    async def receipt_ids(self, user_id: str, conversation_id: str, *, limit: int) -> list[tuple[str, str]]:
        job = partial(recorded_rows.receipt_ids, user_id=user_id, conversation_id=conversation_id, limit=limit)
        return await self._database.read(job)

    async def of_receipt(self, user_id: str, receipt_id: str) -> list[RecordedMessage]:
        job = partial(recorded_rows.of_receipt, user_id=user_id, receipt_id=receipt_id)
        return await self._database.read(job) if receipt_id else []

    async def delete_message(self, user_id: str, message_id: str) -> bool:
        return await self._delete(user_id, [message_id], only_learnt=False) > 0

    async def delete_turns(self, user_id: str, turn_ids: Collection[str]) -> int:
        waiting, deleted = list(turn_ids), 0
        for start in range(0, len(waiting), CHANGES_PER_WRITE):
            batch = waiting[start : start + CHANGES_PER_WRITE]
            deleted += await self._database.write(
                partial(recorded_changes.delete_turns, user_id=user_id, turn_ids=batch)
            )
        return deleted

    async def delete_added(self, user_id: str, conversation_id: str) -> int:
        return await self._database.write(
            partial(recorded_changes.delete_added, user_id=user_id, conversation_id=conversation_id)
        )

    async def erase(self, user_id: str, *, project_id: str = "", before: float) -> int:
        job = partial(
            recorded_changes.erase, user_id=user_id, project_id=project_id, before=before, limit=CHANGES_PER_WRITE
        )
        erased = 0
        while found := await self._database.write(job):
            erased += found
        return erased

    async def trim(self, trimming: Trimming) -> int:
        older = await self._older(trimming, lambda _: True)
        removed = 0
        for start in range(0, len(older), CHANGES_PER_WRITE):
            batch = older[start : start + CHANGES_PER_WRITE]
            removed += await self._delete(trimming.user_id, batch, only_learnt=True)
        return removed

    async def compress(self, trimming: Trimming, *, characters_max: int) -> int:
        older = await self._older(
            trimming, lambda message: is_output(message) and len(message.content) > characters_max
        )
        changed = 0
        for start in range(0, len(older), CHANGES_PER_WRITE):
            job = partial(
                recorded_changes.rewrite_outputs,
                user_id=trimming.user_id,
                message_ids=older[start : start + CHANGES_PER_WRITE],
                rewrite=partial(shortened, characters_max=characters_max),
            )
            changed += await self._database.write(job)
        return changed

    async def expire(self, *, before: float, limit: int) -> int:
        job = partial(recorded_changes.expire, before=before, limit=limit, now=self._clock())
        return await self._database.write(job)

    async def _delete(self, user_id: str, message_ids: Sequence[str], *, only_learnt: bool) -> int:
        job = partial(
            recorded_changes.delete_messages, user_id=user_id, message_ids=message_ids, only_learnt=only_learnt
        )
        return await self._database.write(job)

    async def _older(self, trimming: Trimming, admits: Callable[[RecordedMessage], bool]) -> list[str]:
        """The ids of all but the last `keep_last` messages, of those that `admits` accepts."""
        where, cursor = MessageFilter(trimming.user_id, trimming.conversation_id), ""
        found: list[tuple[str, bool]] = []
        while True:
            page = await self.page(where, limit=PAGE_MESSAGES, cursor=cursor)
            found += [(message.id, admits(message)) for message in page.messages]
            cursor = page.next_cursor
            if not cursor:
                break
        older = found[: max(0, len(found) - trimming.keep_last)]
        return [message_id for message_id, is_admitted in older if is_admitted]
