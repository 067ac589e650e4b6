"""The messages of the conversation record in SQL: read by `recorded_rows`, and here added, deleted, shortened, expired.

A turn that is not learnt yet is withdrawn from learning before any of its text goes, so that whoever holds a lease on
it gets a `Conflict`. Changes of a whole conversation are split into short transactions, so that the writers of other
processes get their turn.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from memory.adapters.sql import recorded_rows, turn_effects, turns_upkeep
from memory.adapters.sql.database import DatedOnDatabase, reading, writes, writing
from memory.adapters.sql.session_summaries import let_rest
from memory.adapters.sql.statements import Connection, listed, statements
from memory.adapters.sql.turns_rows import messages_of, messages_to_bytes, to_bytes, to_text, turn_of
from memory.model import (
    MessageDirection,
    MessageFilter,
    Party,
    PartyType,
    RecordedMessage,
    ToolMessage,
    Turn,
    TurnStatus,
)
from memory.model.recorded import (
    ADDED_SEQ,
    ANSWER_ORDINAL,
    ID_OF_TURN,
    NAME_CHARACTERS_MAX,
    REMOVED,
    TOOLS_ORDINAL,
    assistant_of,
    messages_of_turn,
    part_of,
    shortened,
)
from memory.ports import Trimming
from memory.ports.paging import all_pages, batched

SQL = statements("recorded_messages")

UNLEARNT = ("open", "ready", "window")
TOOL_MESSAGES_PER_TURN_MAX = 200  # a loop of a hundred calls; further ones are not recorded
PAGE_MESSAGES = 500  # read at a time for a change of a whole conversation
CHANGES_PER_WRITE = 100  # turns or messages changed in one step


def add(connection: Connection, user_id: str, messages: Sequence[RecordedMessage], *, now: float) -> int:
    """Returns how many were not there yet."""
    added = 0
    for message in messages:
        added += SQL.insert_message(
            connection,
            id=message.id,
            user_id=user_id,
            project_id=message.project_id,
            conversation_id=message.conversation_id,
            turn_id=message.turn_id,
            at=message.at,
            now=now,
            seq=message.seq,
            ordinal=message.ordinal,
            trace_id=to_bytes(message.trace_id),
            source_type=message.source.type.value,
            source=to_bytes(message.source.name),
            target_type=message.target.type.value,
            target=to_bytes(message.target.name),
            direction=message.direction.value,
            visibility=message.visibility.value,
            content=to_bytes(message.content),
        ).rowcount
    return added


def _tool_traffic(
    turn: Turn, messages: Sequence[ToolMessage], *, seq: int, known: int, at: float
) -> list[RecordedMessage]:
    """What is recorded of it if the turn has so many such messages already."""
    recorded = []
    for ordinal, message in enumerate(messages[: max(0, TOOL_MESSAGES_PER_TURN_MAX - known)], known):
        tool, assistant = Party(PartyType.TOOL, message.name[:NAME_CHARACTERS_MAX]), assistant_of(turn)
        recorded.append(
            RecordedMessage(
                id=_tool_message_id(turn.id, message),
                conversation_id=turn.scope.session_id,
                source=tool if message.is_result else assistant,
                target=assistant if message.is_result else tool,
                direction=MessageDirection.INPUT if message.is_result else MessageDirection.OUTPUT,
                content=message.content,
                at=at,
                trace_id=turn.trace_id,
                project_id=turn.scope.project_id,
                turn_id=turn.id,
                seq=seq,
                ordinal=TOOLS_ORDINAL + ordinal,
            )
        )
    return recorded


def _tool_message_id(turn_id: str, message: ToolMessage) -> str:
    """Equal for the same call or result, so that a repeated request adds nothing."""
    named = message.call_id or f"{message.name}\x1f{message.content}"
    digest = hashlib.sha256(to_bytes(f"{message.is_result}\x1f{named}")).hexdigest()[:24]
    return f"{ID_OF_TURN}{turn_id}:tool-{digest}"


def delete_turns(connection: Connection, user_id: str, turn_ids: Collection[str]) -> int:
    """With tool traffic, receipts and links. Ids of other users' turns are ignored."""
    if not turn_ids:
        return 0
    turns_upkeep.withdraw(connection, user_id, opened_before=math.inf, only=turn_ids)
    ids = listed(turn_ids)
    receipts = SQL.receipts_of_turns(connection, user_id=user_id, turn_ids=ids).fetchall()
    receipt_ids = listed(to_text(receipt_id) for (receipt_id,) in receipts)
    SQL.delete_receipts(connection, user_id=user_id, receipt_ids=receipt_ids)
    SQL.delete_links(connection, user_id=user_id, turn_ids=ids)
    SQL.delete_tool_messages(connection, user_id=user_id, turn_ids=ids)
    deleted = SQL.delete_turns(connection, user_id=user_id, turn_ids=ids).fetchall()
    turn_effects.turns_deleted(connection, user_id, deleted)
    return len(deleted)


def delete_added(connection: Connection, user_id: str, conversation_id: str) -> int:
    return SQL.delete_added_messages(connection, user_id=user_id, conversation_id=conversation_id).rowcount


def erase(connection: Connection, user_id: str, project_id: str, *, before: float, limit: int) -> int:
    """Up to `limit` turns, and added messages. Tool traffic goes with its turn."""
    turn_ids = SQL.turns_before.column(connection, user_id=user_id, project_id=project_id, before=before, limit=limit)
    turns = delete_turns(connection, user_id, turn_ids)
    turn_effects.forget_removed(connection, user_id, turn_ids)  # the caller has erased all rows of that scope
    added = SQL.delete_added_before(
        connection, user_id=user_id, project_id=project_id, before=before, limit=limit
    ).rowcount
    return turns + added


def delete_messages(connection: Connection, user_id: str, message_ids: Collection[str], *, only_learnt: bool) -> int:
    """`only_learnt`: leave turns alone that are not learnt yet, instead of withdrawing them."""
    return sum(_deleted(connection, user_id, message_id, only_learnt=only_learnt) for message_id in message_ids)


def _deleted(connection: Connection, user_id: str, message_id: str, *, only_learnt: bool) -> bool:
    found, part = recorded_rows.find(connection, user_id, message_id), part_of(message_id)
    if found is None or (only_learnt and found.turn_id and _is_unlearnt(connection, found.turn_id)):
        return False
    if part is None:
        SQL.delete_message(connection, user_id=user_id, message_id=message_id)
        return True
    turn_id, ordinal = part
    if _is_unlearnt(connection, turn_id):
        turns_upkeep.withdraw(connection, user_id, opened_before=math.inf, only=[turn_id])
    _rewrite(connection, turn_id, ordinal, lambda _: "")
    if _is_empty(connection, turn_id):
        delete_turns(connection, user_id, [turn_id])
    return True


def _is_empty(connection: Connection, turn_id: str) -> bool:
    """Whether nothing is left of a turn that has ended."""
    row = SQL.turn_by_id(connection, turn_id=turn_id).fetchone()
    turn = turn_of(row)
    has_tools = SQL.tool_message.exists(connection, turn_id=turn_id)
    return turn.status is not TurnStatus.OPENED and not has_tools and not messages_of_turn(turn, seq=row[0])


def _rewrite(connection: Connection, turn_id: str, ordinal: int, rewrite: Callable[[str], str]) -> None:
    """Change the text of one part of a turn; without a text, a user message loses its role as well."""
    row = SQL.texts_of_turn(connection, turn_id=turn_id).fetchone()
    messages, answer, user_id, session_id, stage, finished_at = row
    if ordinal == ANSWER_ORDINAL:
        SQL.set_answer(connection, text=to_bytes(rewrite(to_text(answer))), turn_id=turn_id)
    else:
        said = list(messages_of(messages))
        content = rewrite(said[ordinal].content)
        said[ordinal] = replace(said[ordinal], role=said[ordinal].role if content else REMOVED, content=content)
        SQL.set_messages(connection, written=messages_to_bytes(said), turn_id=turn_id)
        if stage != turn_effects.NOTHING_TO_LEARN:
            turn_effects.words_removed(connection, user_id, [turn_id])
    if finished_at is not None:
        turn_effects.sessions_changed(connection, user_id, {session_id})


def _is_unlearnt(connection: Connection, turn_id: str) -> bool:
    return SQL.stage_of_turn.value(connection, str, turn_id=turn_id) in UNLEARNT


def rewrite_outputs(
    connection: Connection, user_id: str, message_ids: Collection[str], rewrite: Callable[[str], str]
) -> int:
    """Change the texts of answers and of rows of `messages`; turns not learnt yet are left alone. Returns how many."""
    changed = 0
    for message_id in message_ids:
        found, part = recorded_rows.find(connection, user_id, message_id), part_of(message_id)
        if found is None or rewrite(found.content) == found.content:
            continue
        if found.turn_id and _is_unlearnt(connection, found.turn_id):
            continue
        if part is not None:
            _rewrite(connection, part[0], part[1], rewrite)
        else:
            SQL.set_content(
                connection, content=to_bytes(rewrite(found.content)), user_id=user_id, message_id=message_id
            )
        changed += 1
    return changed


class SqlRecordedMessages(DatedOnDatabase):
    page = reading(recorded_rows.page)
    find = reading(recorded_rows.find)
    sessions = reading(recorded_rows.sessions)
    session = reading(recorded_rows.session)
    turn_ids = reading(recorded_rows.turn_ids)
    abandoned = reading(recorded_rows.abandoned)
    receipt_ids = reading(recorded_rows.receipt_ids)
    of_receipt = reading(recorded_rows.of_receipt)
    delete_added = writing(delete_added)
    _delete_turns = writing(delete_turns)
    _delete_messages = writing(delete_messages)
    _erase = writing(erase)
    _rewrite_outputs = writing(rewrite_outputs)

    @writes
    def add(self, connection: Connection, user_id: str, messages: Sequence[RecordedMessage]) -> None:
        add(connection, user_id, messages, now=self._clock())

    @writes
    def add_tool_messages(
        self, connection: Connection, turn_id: str, messages: Sequence[ToolMessage], *, at: float
    ) -> None:
        row = SQL.turn_by_id(connection, turn_id=turn_id).fetchone()
        if row is None:
            return
        turn = turn_of(row)
        known = SQL.count_tool_messages(connection, turn_id=turn_id).fetchone()[0]
        recorded = _tool_traffic(turn, messages, seq=row[0], known=known, at=at)
        add(connection, turn.scope.user_id, recorded, now=self._clock())

    async def delete_message(self, user_id: str, message_id: str) -> bool:
        return await self._delete_messages(user_id, [message_id], only_learnt=False) > 0

    async def delete_turns(self, user_id: str, turn_ids: Collection[str]) -> int:
        return await _in_batches(list(turn_ids), partial(self._delete_turns, user_id))

    async def erase(self, user_id: str, *, project_id: str = "", before: float) -> int:
        erased = 0
        while found := await self._erase(user_id, project_id, before=before, limit=CHANGES_PER_WRITE):
            erased += found
        return erased

    async def trim(self, trimming: Trimming) -> int:
        older, user_id = await self._older(trimming, lambda _: True), trimming.user_id
        return await _in_batches(older, partial(self._delete_messages, user_id, only_learnt=True))

    async def compress(self, trimming: Trimming, *, characters_max: int) -> int:
        def is_long_output(message: RecordedMessage) -> bool:
            is_output = message.direction is MessageDirection.OUTPUT or message.source.type is PartyType.TOOL
            return is_output and len(message.content) > characters_max

        older, shorten = await self._older(trimming, is_long_output), partial(shortened, characters_max=characters_max)
        return await _in_batches(older, partial(self._rewrite_outputs, trimming.user_id, rewrite=shorten))

    @writes
    def expire(self, connection: Connection, *, before: float, limit: int) -> int:
        rows = SQL.oldest_turns(connection, before=before, limit=limit).fetchall()
        by_user: dict[str, list[str]] = {}
        for user_id, turn_id, _ in rows:
            by_user.setdefault(user_id, []).append(turn_id)
        turns = sum(delete_turns(connection, user, ids) for user, ids in by_user.items())
        let_rest(connection, sessions={(user_id, session_id) for user_id, _, session_id in rows}, now=self._clock())
        added = SQL.delete_oldest_added(connection, before=before, added_seq=ADDED_SEQ, limit=limit).rowcount
        return turns + added

    async def _older(self, trimming: Trimming, admits: Callable[[RecordedMessage], bool]) -> list[str]:
        """The ids of all but the last `keep_last` messages, of those that `admits` accepts."""
        where = MessageFilter(trimming.user_id, trimming.conversation_id)
        pages = all_pages(lambda cursor: self.page(where, limit=PAGE_MESSAGES, cursor=cursor))
        found = [(message.id, admits(message)) async for page in pages for message in page.items]
        older = found[: max(0, len(found) - trimming.keep_last)]
        return [message_id for message_id, is_admitted in older if is_admitted]


async def _in_batches(ids: Sequence[str], change: Callable[[Sequence[str]], Awaitable[int]]) -> int:
    """How many were changed, in one short transaction after another."""
    return sum([await change(batch) for batch in batched(ids, CHANGES_PER_WRITE)])
