"""Turns whose words left the record, on Redis: a set per user, written with the commits that delete or reword turns."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_store import QueueIndexes
from memory.adapters.redis.user_index import Look, Marked


class RedisRemovedWords:
    """`memory.ports.RemovedWords`."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._index = QueueIndexes(client).removed_words

    async def next_user(self, *, without: Collection[str] = ()) -> str | None:
        found = await self._index.search(self._look, limit=len(without) + 1)
        return next((user_id for user_id in found if user_id not in without), None)

    async def turn_ids(self, user_id: str, *, limit: int) -> list[str]:
        found = await self._client.call("SRANDMEMBER", UserKeys(user_id).removed_words, limit)
        return [turn_id.decode() for turn_id in found]

    async def settle(self, user_id: str, turn_ids: Sequence[str]) -> None:
        if turn_ids:
            await self._client.call("SREM", UserKeys(user_id).removed_words, *turn_ids)

    async def _look(self, page: Sequence[Marked]) -> list[Look[str]]:
        commands: list[Command] = []
        for marked in page:
            keys = UserKeys.of_digest(marked.member)
            commands += [("GET", keys.user), ("EXISTS", keys.removed_words)]
        replies = await self._client.calls(commands)
        return [
            Look(user.decode(), marked.place) if user is not None and is_there else Look(None, None)
            for marked, user, is_there in zip(page, replies[::2], replies[1::2], strict=True)
        ]
