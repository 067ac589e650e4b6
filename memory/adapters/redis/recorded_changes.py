"""Changes messages of the conversation record on Redis: adds, deletes, shortens. Each is one commit of one user.

A turn that is not learnt yet is withdrawn from learning in the commit in which its text goes, so that whoever holds a
lease on it gets a `Conflict`. Receipts and links of a turn go before it: whoever dies between the two can repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

import msgspec

from memory.adapters.recorded_rules import tool_traffic, with_rewritten
from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.message_values import decode_head
from memory.adapters.redis.queue_store import Planned, QueueStore
from memory.adapters.redis.queue_values import UNLEARNT, UserQueue
from memory.adapters.redis.recorded_rows import RecordedRows
from memory.adapters.redis.session_events import Rests
from memory.adapters.redis.shelves import Shelf, ShelfLimits
from memory.adapters.redis.turn_changes import TurnChanges
from memory.adapters.redis.turn_names import TurnNames
from memory.adapters.redis.turn_records import TurnRecord
from memory.adapters.turn_texts import to_bytes, to_text
from memory.model import ChainLink, RecordedMessage, ToolMessage, TurnStatus
from memory.model.recorded import ANSWER_ORDINAL, messages_of_turn

Rewrite = Callable[[str], str]


class RecordedChanges:
    """Of all users."""

    def __init__(self, client: LogClient, store: QueueStore) -> None:
        self._client = client
        self._store = store
        self._rows = RecordedRows(client)
        self._names = TurnNames(client)
        self._receipts = Shelf(client, log_keys.RECEIPTS, ShelfLimits())
        self._links = Shelf(client, log_keys.CHAINS, ShelfLimits())

    async def add(self, user_id: str, messages: Sequence[RecordedMessage], *, now: float) -> int:
        """Known ids are ignored; returns how many are new."""
        new = list({message.id: message for message in reversed(messages)}.values())[::-1]  # the first of each id

        async def adding(queue: UserQueue) -> Planned[int]:
            changes = TurnChanges(queue)
            known = await self._rows.message_heads(user_id, [message.id for message in new])
            added = [message for message in new if message.id not in known]
            for message in added:
                changes.insert_message(message, place=await self._names.place(), at=now)
            changes.marks += self._store.inserted(user_id, now) if added else []
            return changes.planned(len(added))

        return await self._store.plan(user_id, adding) if new else 0

    async def add_tool_messages(self, turn_id: str, messages: Sequence[ToolMessage], *, at: float, now: float) -> None:
        (user_id,) = await self._names.users_of([turn_id])
        record = None if user_id is None else await self._rows.record(user_id, turn_id)
        if user_id is None or record is None:
            return
        known = await self._client.call("ZCARD", UserKeys(user_id).tools(turn_id))
        recorded = tool_traffic(record.turn(), messages, seq=record.seq, known=known, at=at)
        await self.add(user_id, recorded, now=now)

    async def delete_turns(
        self, user_id: str, turn_ids: Sequence[str], *, forgets: bool = True, rests_at: float | None = None
    ) -> int:
        """With tool traffic, receipts and links. Ids of other users' turns are ignored.

        `forgets` False: the store is erased too. `rests_at`: their sessions are to wait from then on.
        """
        heads = await self._rows.turn_heads(user_id, turn_ids)
        if not heads:
            return 0
        receipts = {to_text(end.receipt_id or head.receipt_id) for head, end in heads.values()} - {""}
        await self._delete_traces(user_id, heads, receipts)
        deleting = partial(self._deleting_turns, turn_ids=list(heads), forgets=forgets, rests_at=rests_at)
        deleted = await self._store.plan(user_id, deleting)
        await self._names.release(user_id, list(heads))
        return deleted

    async def _deleting_turns(
        self, queue: UserQueue, *, turn_ids: Sequence[str], forgets: bool, rests_at: float | None
    ) -> Planned[int]:
        changes, keys = TurnChanges(queue), UserKeys(queue.user_id)
        heads = await self._rows.turn_heads(queue.user_id, turn_ids)
        reading: list[Command] = []
        for turn_id in heads:
            reading += [("HGET", keys.turn(turn_id), "s"), ("ZRANGE", keys.tools(turn_id), 0, -1)]
        replies = await self._client.calls(reading)
        changes.withdraw(list(heads))
        for (turn_id, (head, _)), stage, tools in zip(heads.items(), replies[::2], replies[1::2], strict=True):
            taught = forgets and stage != b"nothing"
            changes.delete(turn_id, head, [to_text(one) for one in tools], taught=taught)
        if rests_at is not None:
            changes.sessions += [Rests(one, rests_at) for one in {head.session_id for head, _ in heads.values()}]
        return changes.planned(len(heads))

    async def delete_added(self, user_id: str, message_ids: Sequence[str]) -> int:
        """Messages that are no part of a turn; others are ignored."""

        async def deleting(queue: UserQueue) -> Planned[int]:
            changes = TurnChanges(queue)
            heads = await self._rows.message_heads(user_id, message_ids)
            added = [head for head in heads.values() if not head.turn_id]
            for head in added:
                changes.delete_message(head)
            return changes.planned(len(added))

        return await self._store.plan(user_id, deleting) if message_ids else 0

    async def change_messages(
        self, user_id: str, message_ids: Sequence[str], rewrite: Rewrite | None, *, only_learnt: bool
    ) -> int:
        """Rewrite or, without a rewriting, delete messages that are no part of a turn's own texts. Returns how many.

        `only_learnt`: leave those of turns alone that are not learnt yet.
        """

        async def changing(queue: UserQueue) -> Planned[int]:
            changes, keys, count = TurnChanges(queue), UserKeys(user_id), 0
            names = [to_bytes(message_id) for message_id in message_ids]
            heads, texts = await self._client.calls(
                [("HMGET", keys.message_heads, *names), ("HMGET", keys.messages, *names)]
            )
            for stored, text in zip(heads, texts, strict=True):
                head = None if stored is None else decode_head(stored)
                if head is None or (only_learnt and _is_unlearnt(queue, head.turn_id)):
                    continue
                if rewrite is None:
                    changes.delete_message(head)
                elif (rewritten := rewrite(to_text(text))) != to_text(text):
                    changes.reword_message(head, rewritten)
                else:
                    continue
                count += 1
            return changes.planned(count)

        return await self._store.plan(user_id, changing) if message_ids else 0

    async def change_parts(
        self, user_id: str, turn_id: str, ordinals: Collection[int], rewrite: Rewrite | None, *, only_learnt: bool
    ) -> int:
        """The same for parts of one turn. A turn of which nothing is left is deleted."""
        record = await self._rows.record(user_id, turn_id)
        if record is None:
            return 0
        changing = partial(
            self._changing_parts, turn_id=turn_id, ordinals=ordinals, rewrite=rewrite, only_learnt=only_learnt
        )
        count, is_empty = await self._store.plan(user_id, changing)
        if is_empty:
            await self.delete_turns(user_id, [turn_id])
        return count

    async def _changing_parts(
        self, queue: UserQueue, *, turn_id: str, ordinals: Collection[int], rewrite: Rewrite | None, only_learnt: bool
    ) -> Planned[tuple[int, bool]]:
        """How many were changed, and whether nothing is left."""
        changes, keys = TurnChanges(queue), UserKeys(queue.user_id)
        record = await self._rows.record(queue.user_id, turn_id)
        if record is None or (only_learnt and _is_unlearnt(queue, turn_id)):
            return Planned((0, False))
        parts = messages_of_turn(record.turn(), seq=record.seq)
        chosen = [part for part in parts if part.ordinal in ordinals]
        rewriting = rewrite or (lambda _: "")
        changed = [part.ordinal for part in chosen if rewriting(part.content) != part.content]
        if not changed:
            return Planned((0, False))
        if not only_learnt:
            changes.withdraw([turn_id])
        messages, answer = _rewritten(record, changed, rewriting)
        changes.reword(record, messages=messages, answer=answer, taught=record.stage != "nothing")
        has_tools = await self._client.call("EXISTS", keys.tools(turn_id))
        is_ended = record.status is not TurnStatus.OPENED
        is_empty = rewrite is None and is_ended and not has_tools and len(changed) == len(parts)
        return changes.planned((len(changed), is_empty))

    async def _delete_traces(self, user_id: str, turn_ids: Collection[str], receipt_ids: Collection[str]) -> None:
        """Of turns in receipts, and in links by which others continue them."""
        await self._receipts.remove(user_id, await self._receipts.named(user_id, sorted(receipt_ids)))
        links = await self._links.all(user_id)
        await self._links.remove(user_id, [one for one in links if _LINKS.decode(one.value).turn_id in turn_ids])


def _is_unlearnt(queue: UserQueue, turn_id: str) -> bool:
    turn = queue.turn(turn_id) if turn_id else None
    return turn is not None and turn.stage in UNLEARNT


def _rewritten(record: TurnRecord, ordinals: Collection[int], rewrite: Rewrite) -> tuple[bytes, bytes]:
    """The turn's messages and its answer."""
    messages, answer = record.beginning.messages, record.end.answer
    for ordinal in ordinals:
        if ordinal == ANSWER_ORDINAL:
            answer = to_bytes(rewrite(to_text(answer)))
        else:
            messages = with_rewritten(messages, ordinal, rewrite)
    return messages, answer


_LINKS = msgspec.msgpack.Decoder(ChainLink)
