"""The messages of the conversation record on Redis: splits changes of much into commits that are short."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from memory.adapters.recorded_rules import CHANGES_PER_WRITE, PAGE_MESSAGES, is_output
from memory.adapters.redis import queue_values
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_store import QueueIndexes, QueueStore
from memory.adapters.redis.queue_values import UNLEARNT
from memory.adapters.redis.recorded_changes import RecordedChanges, Rewrite
from memory.adapters.redis.recorded_rows import RecordedRows
from memory.adapters.redis.turn_changes import MESSAGE_ARRIVED, TURN_ARRIVED
from memory.adapters.redis.user_index import Look, Marked
from memory.adapters.turn_texts import to_text
from memory.model import MessageFilter, RecordedMessage, Session, ToolMessage
from memory.model.recorded import part_of, shortened
from memory.ports import Clock, MessagePage, SessionPage, Trimming

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Ids of what reached us from one user before some time, the oldest first."""

    user_id: str
    turns: Sequence[str] = ()
    messages: Sequence[str] = ()


class RedisRecordedMessages:
    """`memory.ports.RecordedMessages`."""

    def __init__(self, client: LogClient, store: QueueStore, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._rows = RecordedRows(client)
        self._changes = RecordedChanges(client, store)
        self._expiring = QueueIndexes(client).expiring

    async def add(self, user_id: str, messages: Sequence[RecordedMessage]) -> None:
        await self._changes.add(user_id, messages, now=self._clock())

    async def add_tool_messages(self, turn_id: str, messages: Sequence[ToolMessage], *, at: float) -> None:
        await self._changes.add_tool_messages(turn_id, messages, at=at, now=self._clock())

    async def page(self, where: MessageFilter, *, limit: int, cursor: str = "") -> MessagePage:
        found, next_cursor = await self._rows.page(where, limit=limit, cursor=cursor)
        return MessagePage(tuple(found), next_cursor)

    async def find(self, user_id: str, message_id: str) -> RecordedMessage | None:
        part = part_of(message_id)
        if part is None:
            return await self._rows.message(user_id, message_id)
        return await self._rows.part(user_id, *part)

    async def sessions(self, user_id: str, *, limit: int, cursor: str = "") -> SessionPage:
        found, next_cursor = await self._rows.sessions(user_id, limit=limit, cursor=cursor)
        return SessionPage(tuple(found), next_cursor)

    async def session(self, user_id: str, conversation_id: str) -> Session | None:
        return await self._rows.session(user_id, conversation_id)

    async def turn_ids(self, user_id: str, conversation_id: str) -> list[str]:
        return await self._rows.turn_ids(user_id, conversation_id)

    async def receipt_ids(self, user_id: str, conversation_id: str, *, limit: int) -> list[tuple[str, str]]:
        return await self._rows.receipt_ids(user_id, conversation_id, limit=limit)

    async def of_receipt(self, user_id: str, receipt_id: str) -> list[RecordedMessage]:
        return await self._rows.of_receipt(user_id, receipt_id) if receipt_id else []

    async def delete_message(self, user_id: str, message_id: str) -> bool:
        return await self._change(user_id, [message_id], None, only_learnt=False) > 0

    async def delete_turns(self, user_id: str, turn_ids: Collection[str]) -> int:
        return sum([await self._changes.delete_turns(user_id, part) for part in _parts(list(turn_ids))])

    async def delete_added(self, user_id: str, conversation_id: str) -> int:
        found = await self._rows.conversation_message_ids(user_id, conversation_id)
        return sum([await self._changes.delete_added(user_id, part) for part in _parts(found)])

    async def erase(self, user_id: str, *, project_id: str = "", before: float) -> int:
        """Tool traffic goes with its turn."""
        erased = 0
        while True:
            found = await self._arrived(user_id, project_id, before=before)
            for turns in _parts(found.turns):
                erased += await self._changes.delete_turns(user_id, turns, forgets=False)
            for messages in _parts(found.messages):
                erased += await self._changes.delete_added(user_id, messages)
            if not (found.turns or found.messages):
                return erased

    async def trim(self, trimming: Trimming) -> int:
        older = await self._older(trimming, lambda _: True)
        return await self._change(trimming.user_id, older, None, only_learnt=True)

    async def compress(self, trimming: Trimming, *, characters_max: int) -> int:
        older = await self._older(
            trimming, lambda message: is_output(message) and len(message.content) > characters_max
        )
        shortening = partial(shortened, characters_max=characters_max)
        return await self._change(trimming.user_id, older, shortening, only_learnt=True)

    async def expire(self, *, before: float, limit: int) -> int:
        """Of the users with the oldest ones first."""
        looking = partial(self._look, before=before, limit=limit)
        turns = messages = 0
        for found in await self._expiring.search(looking, until=math.nextafter(before, -math.inf), limit=limit):
            going = found.turns[: limit - turns]
            turns += await self._changes.delete_turns(found.user_id, going, rests_at=self._clock())
            leaving = found.messages[: limit - messages]
            messages += await self._changes.delete_added(found.user_id, leaving)
        return turns + messages

    async def _change(
        self, user_id: str, message_ids: Sequence[str], rewrite: Rewrite | None, *, only_learnt: bool
    ) -> int:
        """Rewrite or delete; the parts of one turn together."""
        changed, others = 0, list[str]()
        of_turns: dict[str, set[int]] = {}
        for message_id in message_ids:
            part = part_of(message_id)
            if part is None:
                others.append(message_id)
            else:
                of_turns.setdefault(part[0], set()).add(part[1])
        for turn_id, ordinals in of_turns.items():
            changed += await self._changes.change_parts(user_id, turn_id, ordinals, rewrite, only_learnt=only_learnt)
        for messages in _parts(others):
            changed += await self._changes.change_messages(user_id, messages, rewrite, only_learnt=only_learnt)
        return changed

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

    async def _arrived(self, user_id: str, project_id: str, *, before: float) -> Arrivals:
        """In that project, or with "" in any."""
        turns, messages = _split(await self._client.call(*_arrived_before(UserKeys(user_id), before)))
        if project_id:
            heads = await self._rows.turn_heads(user_id, turns)
            turns = [turn_id for turn_id, (head, _) in heads.items() if head.project_id == project_id]
            added = await self._rows.message_heads(user_id, messages)
            messages = [message_id for message_id, head in added.items() if head.project_id == project_id]
        return Arrivals(user_id, turns, messages)

    async def _look(self, page: Sequence[Marked], *, before: float, limit: int) -> list[Look[Arrivals]]:
        """What may go of each user. Whoever has turns that are not learnt yet keeps the place."""
        reading: list[Command] = []
        for keys in (UserKeys.of_digest(marked.member) for marked in page):
            queue = ("HGET", keys.queue, "q")
            reading += [("GET", keys.user), queue, ("ZRANGE", keys.arrivals, 0, 0, "WITHSCORES")]
            reading.append(_arrived_before(keys, before))
        replies = await self._client.calls(reading)
        looks: list[Look[Arrivals]] = []
        for number, marked in enumerate(page):
            user, stored, oldest, arrived = replies[4 * number : 4 * number + 4]
            queue_of_user = queue_values.decode(stored, (user or b"").decode())
            turns, messages = _split(arrived)
            waiting = {turn.id for turn in queue_of_user.turns if turn.stage in UNLEARNT}
            going = [turn_id for turn_id in turns if turn_id not in waiting]
            place = marked.place if arrived else float(oldest[0][1]) if oldest else None
            if not queue_of_user.user_id or not (going or messages):
                looks.append(Look(None, place if queue_of_user.user_id else None))
            else:
                looks.append(Look(Arrivals(queue_of_user.user_id, going[:limit], messages[:limit]), place))
        return looks


def _arrived_before(keys: UserKeys, before: float) -> Command:
    return ("ZRANGE", keys.arrivals, "-inf", f"({before!r}", "BYSCORE")


def _split(arrivals: Sequence[bytes]) -> tuple[list[str], list[str]]:
    """Ids of turns, and of messages."""
    names = [to_text(name) for name in arrivals]
    turns = [name.removeprefix(TURN_ARRIVED) for name in names if name.startswith(TURN_ARRIVED)]
    messages = [name.removeprefix(MESSAGE_ARRIVED) for name in names if name.startswith(MESSAGE_ARRIVED)]
    return turns, messages


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), CHANGES_PER_WRITE):
        yield items[start : start + CHANGES_PER_WRITE]
