"""Finds and reads messages of the conversation record on Redis.

The heads of all candidates are read and sorted first; texts are read for one page only, up to a limit of bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory.adapters import pages
from memory.adapters.recorded_rules import (
    EXAMINED_BYTES_MAX,
    TITLE_BYTES_MAX,
    TITLE_MESSAGES,
    UNITS_MAX,
    admits,
    read_cursor,
    title_of,
    write_cursor,
)
from memory.adapters.redis import message_values, queue_values
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.message_values import MessageHead
from memory.adapters.redis.queue_values import UNLEARNT, UserQueue
from memory.adapters.redis.turn_records import (
    TurnEndHead,
    TurnHead,
    TurnRecord,
    end_head_of,
    head_of,
    read_command,
    record_of,
)
from memory.adapters.turn_texts import to_bytes, to_text
from memory.model import MessageFilter, PartyType, RecordedMessage, Session
from memory.model.recorded import ANSWER_ORDINAL, TOOLS_ORDINAL, Position, messages_of_turn

READ_AT_ONCE = 100  # parts, beyond those that a page needs
HEADS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class RecordHeads:
    """Turns and other messages without their texts, by id."""

    turns: Mapping[str, tuple[TurnHead, TurnEndHead]] = field(default_factory=dict)
    messages: Mapping[str, MessageHead] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedPart:
    """What the user said in a turn, its answer, or a message. `last`: the position of its last message."""

    last: Position
    part: str
    id: str
    size: int


class RecordedRows:
    """Of all users."""

    def __init__(self, client: LogClient) -> None:
        self._client = client

    async def page(
        self, where: MessageFilter, *, limit: int, cursor: str, bytes_max: int = EXAMINED_BYTES_MAX
    ) -> tuple[list[RecordedMessage], str]:
        """The messages and the next cursor. At least one part is examined, whatever its size."""
        after = read_cursor(cursor)
        heads = await self._heads(where.user_id, where.conversation_id)
        parts = sorted((one for one in _parts_of(heads, where) if one.last > after), key=lambda one: one.last)
        examined = _fitting(parts[:UNITS_MAX], bytes_max)
        found: list[RecordedMessage] = []
        last = after
        async for part, messages in self._read(where.user_id, heads, examined, at_once=limit + 1):
            for message in messages:
                if message.position <= after or not admits(where, message):
                    continue
                if len(found) == limit:
                    return found, write_cursor(found[-1].position)
                found.append(message)
            last = part.last
        return found, write_cursor(last) if len(examined) < len(parts) else ""

    async def message(self, user_id: str, message_id: str) -> RecordedMessage | None:
        """One that is no part of a turn's own texts."""
        keys = UserKeys(user_id)
        head, text = await self._client.calls(
            [("HGET", keys.message_heads, _bytes_of(message_id)), ("HGET", keys.messages, _bytes_of(message_id))]
        )
        return None if head is None or text is None else message_values.message_of(_head(head), text)

    async def part(self, user_id: str, turn_id: str, ordinal: int) -> RecordedMessage | None:
        """A message that is part of a turn."""
        record = await self.record(user_id, turn_id)
        parts = [] if record is None else messages_of_turn(record.turn(), seq=record.seq)
        return next((message for message in parts if message.ordinal == ordinal), None)

    async def record(self, user_id: str, turn_id: str) -> TurnRecord | None:
        return record_of(await self._client.call(*read_command(UserKeys(user_id), turn_id)))

    async def turn_ids(self, user_id: str, conversation_id: str) -> list[str]:
        found = await self._client.call("ZRANGE", UserKeys(user_id).session(conversation_id), 0, -1)
        return [turn_id.decode() for turn_id in found]

    async def receipt_ids(self, user_id: str, conversation_id: str, *, limit: int) -> list[tuple[str, str]]:
        heads = await self._heads(user_id, conversation_id)
        known = [(one, to_text(end.receipt_id or head.receipt_id)) for one, (head, end) in heads.turns.items()]
        return [(turn_id, receipt_id) for turn_id, receipt_id in known if receipt_id][-limit:] if limit else []

    async def of_receipt(self, user_id: str, receipt_id: str) -> list[RecordedMessage]:
        heads, wanted = await self._heads(user_id, ""), to_bytes(receipt_id)
        found = [one for one, (head, end) in heads.turns.items() if wanted == (end.receipt_id or head.receipt_id)]
        record = await self.record(user_id, found[-1]) if found else None
        return [] if record is None else messages_of_turn(record.turn(), seq=record.seq)

    async def turn_heads(self, user_id: str, turn_ids: Sequence[str]) -> dict[str, tuple[TurnHead, TurnEndHead]]:
        """In that order, without those that are not recorded."""
        keys = UserKeys(user_id)
        found: dict[str, tuple[TurnHead, TurnEndHead]] = {}
        for start in range(0, len(turn_ids), HEADS_AT_ONCE):
            names = turn_ids[start : start + HEADS_AT_ONCE]
            heads, ends = await self._client.calls(
                [("HMGET", keys.turn_heads, *map(_bytes_of, names)), ("HMGET", keys.turn_ends, *map(_bytes_of, names))]
            )
            for turn_id, head, end in zip(names, heads, ends, strict=True):
                if head is not None and end is not None:
                    found[turn_id] = (head_of(head), end_head_of(end))
        return found

    async def message_heads(self, user_id: str, message_ids: Sequence[str]) -> dict[str, MessageHead]:
        """Likewise."""
        keys = UserKeys(user_id)
        found: dict[str, MessageHead] = {}
        for start in range(0, len(message_ids), HEADS_AT_ONCE):
            names = message_ids[start : start + HEADS_AT_ONCE]
            heads = await self._client.call("HMGET", keys.message_heads, *map(_bytes_of, names))
            found |= {name: _head(head) for name, head in zip(names, heads, strict=True) if head is not None}
        return found

    async def conversation_message_ids(self, user_id: str, conversation_id: str) -> list[str]:
        found = await self._client.call("ZRANGE", UserKeys(user_id).conversation(conversation_id), 0, -1)
        return [to_text(message_id) for message_id in found]

    # Sessions

    async def sessions(self, user_id: str, *, limit: int, cursor: str) -> tuple[list[Session], str]:
        """One page, the latest active first. The cost grows with the number of the user's turns, not their texts."""
        found = await self._sessions(user_id, "")
        shown, next_cursor = pages.cut([(one.last_at, one.id) for one in found.values()], limit=limit, cursor=cursor)
        return [await self._titled(user_id, found[session_id]) for _, session_id in shown], next_cursor

    async def session(self, user_id: str, conversation_id: str) -> Session | None:
        found = (await self._sessions(user_id, conversation_id)).get(conversation_id)
        return None if found is None else await self._titled(user_id, found)

    async def _sessions(self, user_id: str, only: str) -> dict[str, Session]:
        stored = await self._client.call("HGET", UserKeys(user_id).queue, "q")
        return _sessions_of(await self._heads(user_id, only), queue_values.decode(stored, user_id))

    async def _titled(self, user_id: str, session: Session) -> Session:
        where = MessageFilter(user_id, session.id)
        messages, _ = await self.page(where, limit=TITLE_MESSAGES, cursor="", bytes_max=TITLE_BYTES_MAX)
        return replace(session, title=title_of(messages))

    # Reading

    async def _heads(self, user_id: str, conversation_id: str) -> RecordHeads:
        """Of one conversation, or with "" of all."""
        if conversation_id:
            turn_ids = await self.turn_ids(user_id, conversation_id)
            message_ids = await self.conversation_message_ids(user_id, conversation_id)
            turns = await self.turn_heads(user_id, turn_ids)
            return RecordHeads(turns, await self.message_heads(user_id, message_ids))
        keys = UserKeys(user_id)
        heads, ends, messages = await self._client.calls(
            [("HGETALL", keys.turn_heads), ("HGETALL", keys.turn_ends), ("HGETALL", keys.message_heads)]
        )
        return RecordHeads(
            {one.decode(): (head_of(head), end_head_of(ends[one])) for one, head in heads.items() if one in ends},
            {to_text(name): _head(head) for name, head in messages.items()},
        )

    async def _read(
        self, user_id: str, heads: RecordHeads, parts: Sequence[RecordedPart], *, at_once: int
    ) -> AsyncIterator[tuple[RecordedPart, list[RecordedMessage]]]:
        """Some at a time. Parts that were deleted meanwhile have no messages."""
        keys, size = UserKeys(user_id), min(at_once, READ_AT_ONCE)
        for start in range(0, len(parts), size):
            batch = parts[start : start + size]
            turn_ids = list(dict.fromkeys(one.id for one in batch if one.part != "message"))
            message_ids = [one.id for one in batch if one.part == "message"]
            reading: list[Command] = [read_command(keys, turn_id) for turn_id in turn_ids]
            reading += [("HGET", keys.messages, _bytes_of(message_id)) for message_id in message_ids]
            replies = await self._client.calls(reading)
            records = dict(zip(turn_ids, map(record_of, replies[: len(turn_ids)]), strict=True))
            texts = dict(zip(message_ids, replies[len(turn_ids) :], strict=True))
            for part in batch:
                if part.part == "message":
                    text = texts[part.id]
                    yield part, [] if text is None else [message_values.message_of(heads.messages[part.id], text)]
                else:
                    yield part, _messages_in(records[part.id], part)


def _parts_of(heads: RecordHeads, where: MessageFilter) -> list[RecordedPart]:
    """A part "said" holds several messages, up to `TOOLS_ORDINAL`."""
    trace = to_bytes(where.trace_id)
    parts: list[RecordedPart] = []
    for turn_id, (head, end) in heads.turns.items():
        is_other_agent = where.agent_id and not where.with_shared and head.agent_id != where.agent_id
        if is_other_agent or (trace and head.trace_id != trace):
            continue
        parts.append(RecordedPart((head.said_at, head.seq, TOOLS_ORDINAL - 1), "said", turn_id, head.size))
        if end.size:
            at = head.said_at if end.answered_at is None else end.answered_at
            parts.append(RecordedPart((at, head.seq, ANSWER_ORDINAL), "answer", turn_id, end.size))
    parts += [
        RecordedPart(message.position, "message", message_id, message.size)
        for message_id, message in heads.messages.items()
        if not trace or message.trace_id == trace
    ]
    return parts


def _fitting(parts: Sequence[RecordedPart], bytes_max: int) -> Sequence[RecordedPart]:
    """As many as have so many bytes together; at least one."""
    room = bytes_max
    for number, part in enumerate(parts):
        room -= part.size
        if number and room < 0:
            return parts[:number]
    return parts


def _messages_in(record: TurnRecord | None, part: RecordedPart) -> list[RecordedMessage]:
    if record is None:
        return []
    is_answer = part.part == "answer"
    messages = messages_of_turn(record.turn(), seq=record.seq)
    return [message for message in messages if (message.ordinal == ANSWER_ORDINAL) == is_answer]


def _sessions_of(heads: RecordHeads, queue: UserQueue) -> dict[str, Session]:
    found: dict[str, Session] = {}
    for head, end in heads.turns.values():
        ended_at = head.said_at if end.answered_at is None else end.answered_at
        known = found.get(head.session_id) or _session(head.session_id, head.said_at)
        seen = _seen(known, head.said_at, max(head.said_at, ended_at), {head.agent_id})
        found[head.session_id] = replace(seen, turns=known.turns + 1)
    for message in heads.messages.values():
        known = found.get(message.conversation_id) or _session(message.conversation_id, message.at)
        named = ((message.source_type, message.source), (message.target_type, message.target))
        agents = {to_text(name) for kind, name in named if kind == PartyType.AGENT.value}
        seen = _seen(known, message.at, message.at, agents)
        found[seen.id] = replace(seen, messages_added=known.messages_added + (not message.turn_id))
    for turn in queue.turns:
        if (one := found.get(turn.session_id)) is not None:
            unlearnt = one.unlearnt_turns + (turn.stage in UNLEARNT)
            found[one.id] = replace(one, is_answering=one.is_answering or turn.is_open, unlearnt_turns=unlearnt)
    return found


def _session(session_id: str, at: float) -> Session:
    return Session(session_id, at, at, turns=0, messages_added=0, agent_ids=(), is_answering=False, unlearnt_turns=0)


def _seen(session: Session, first_at: float, last_at: float, agents: Collection[str]) -> Session:
    return replace(
        session,
        first_at=min(first_at, session.first_at),
        last_at=max(last_at, session.last_at),
        agent_ids=tuple(sorted({*agents, *session.agent_ids} - {""})),
    )


def _head(stored: bytes) -> MessageHead:
    return message_values.decode_head(stored)


def _bytes_of(name: str) -> bytes:
    return to_bytes(name)
