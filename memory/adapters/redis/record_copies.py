"""Copies of the conversation record on Redis, out of it and into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace

from memory.adapters.copy_rules import moved_to, owned_turn, plain_message, plain_turn
from memory.adapters.redis.known_exchanges import KnownExchanges
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.message_values import decode_head, message_of
from memory.adapters.redis.queue_store import Planned, QueueStore
from memory.adapters.redis.queue_values import UNLEARNT, UserQueue
from memory.adapters.redis.recorded_changes import RecordedChanges
from memory.adapters.redis.recorded_rows import RecordedRows
from memory.adapters.redis.session_events import Changed
from memory.adapters.redis.turn_changes import NewTurn, TurnChanges
from memory.adapters.redis.turn_names import TurnNames
from memory.adapters.redis.turn_records import read_command, record_of
from memory.adapters.turn_rules import TAUGHT
from memory.model import RecordedMessage
from memory.model.turn_copies import Learning, TurnCopy, copied_turn_id
from memory.ports import Clock

PAGE_ROWS = 50  # of at most 2 MiB each
ADDED_AT_ONCE = 20  # turns of one commit


class RedisRecordCopies:
    """`memory.ports.RecordCopies`."""

    def __init__(self, client: LogClient, store: QueueStore, *, clock: Clock) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._names = TurnNames(client)
        self._exchanges = KnownExchanges(client)
        self._rows = RecordedRows(client)
        self._changes = RecordedChanges(client, store)

    async def turns(self, user_id: str) -> AsyncIterator[TurnCopy]:
        keys = UserKeys(user_id)
        async for ids in self._pages(keys.turns):
            names = [turn_id.decode() for turn_id in ids]
            left_out, *replies = await self._client.calls(
                [("SMISMEMBER", keys.in_no_summary, *ids), *(read_command(keys, turn_id) for turn_id in names)]
            )
            queue = await self._store.read(user_id)
            waiting = {turn.id for turn in queue.turns if turn.stage in UNLEARNT}
            for turn_id, is_left_out, reply in zip(names, left_out, replies, strict=True):
                record = record_of(reply)
                if record is not None:
                    learning = Learning.LEARNT if record.stage == "learnt" else Learning.NEVER
                    learning = Learning.DUE if turn_id in waiting else learning
                    yield TurnCopy(plain_turn(record.turn()), learning, not is_left_out and record.claims is None)

    async def messages(self, user_id: str) -> AsyncIterator[RecordedMessage]:
        keys = UserKeys(user_id)
        async for ids in self._pages(keys.message_places):
            heads, texts = await self._client.calls(
                [("HMGET", keys.message_heads, *ids), ("HMGET", keys.messages, *ids)]
            )
            for head, text in zip(heads, texts, strict=True):
                if head is not None and text is not None:
                    yield plain_message(message_of(decode_head(head), text))

    async def _pages(self, index: str) -> AsyncIterator[list[bytes]]:
        """The members of a sorted set in order, some at a time."""
        after = "-inf"
        while True:
            span = (after, "+inf", "BYSCORE", "LIMIT", 0, PAGE_ROWS, "WITHSCORES")
            found = await self._client.call("ZRANGE", index, *span)
            if found:
                yield [member for member, _ in found]
                after = f"({float(found[-1][1]):.0f}"
            if len(found) < PAGE_ROWS:
                return

    async def add_turns(self, user_id: str, copies: Sequence[TurnCopy]) -> int:
        own = [replace(copy, turn=owned_turn(copy.turn, user_id)) for copy in copies]
        return sum(
            [
                await self._add_turns(user_id, own[start : start + ADDED_AT_ONCE])
                for start in range(0, len(own), ADDED_AT_ONCE)
            ]
        )

    async def own_turns(self, user_id: str, turn_ids: Collection[str]) -> frozenset[str]:
        return frozenset(await self._rows.turn_heads(user_id, sorted(turn_ids)))

    async def add_messages(self, user_id: str, messages: Sequence[RecordedMessage]) -> int:
        placed = [one for message in messages if (one := await self._placed(message, user_id)) is not None]
        return await self._changes.add(user_id, placed, now=self._clock())

    async def _add_turns(self, user_id: str, copies: Sequence[TurnCopy]) -> int:
        now = self._clock()

        async def adding(queue: UserQueue) -> Planned[int]:
            changes, added = TurnChanges(queue), list[str]()
            for copy in copies:
                turn_id = copied_turn_id(user_id, copy.turn.id)
                if turn_id not in added and await self._is_new(copy, turn_id):
                    await self._insert(changes, copy, turn_id, now=now)
                    added.append(turn_id)
            changes.marks += self._store.inserted(user_id, now) if added else []
            changes.after += self._names.keeping(changes.keys.digest, added)
            return changes.planned(len(added))

        return await self._store.plan(user_id, adding)

    async def _is_new(self, copy: TurnCopy, turn_id: str) -> bool:
        ids = (copy.turn.id, turn_id)
        if await self._rows.turn_heads(copy.turn.scope.user_id, ids):
            return False
        return not any([await self._exchanges.was_recorded(replace(copy.turn, id=one)) for one in ids])

    async def _insert(self, changes: TurnChanges, copy: TurnCopy, turn_id: str, *, now: float) -> None:
        turn, user_id = replace(copy.turn, id=turn_id), copy.turn.scope.user_id
        (seq,) = await self._names.claim(user_id, [turn_id])
        assert seq is not None, "the id of a copy names its user"
        never = "learnt" if copy.learning is Learning.LEARNT else "nothing"
        stage = "" if copy.learning is Learning.DUE and turn.status in TAUGHT else never
        words = await self._exchanges.words_digest(turn)
        changes.insert(NewTurn(turn, seq, now, stage=stage, words=words))
        if not copy.in_summaries:
            changes.commands.append(("SADD", changes.keys.in_no_summary, turn_id))
            changes.sessions.append(Changed(turn.scope.session_id))

    async def _placed(self, message: RecordedMessage, user_id: str) -> RecordedMessage | None:
        """With the id and the place of its turn here; None without that turn."""
        if not message.turn_id:
            return message
        ids = (message.turn_id, copied_turn_id(user_id, message.turn_id))
        for turn_id, (head, _) in (await self._rows.turn_heads(user_id, ids)).items():
            return moved_to(message, turn_id, seq=head.seq)
        return None
