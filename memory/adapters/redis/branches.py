"""A user's positions of turns on Redis: reads them, and shows the changes of one commit on top of what was read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory.adapters import tree_rules
from memory.adapters.redis import branch_values
from memory.adapters.redis.branch_values import Kind, PlacedTurn
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.turn_records import TurnRecord, read_command, record_of

PRUNED_AT_ONCE = 1_000


class Branches:
    """What is read holds if nobody commits a change of the user until this one is committed."""

    def __init__(self, client: LogClient, user_id: str) -> None:
        self._client = client
        self._keys = UserKeys(user_id)
        self._read: dict[str, PlacedTurn] = {}
        self._changed: dict[str, PlacedTurn] = {}

    async def node(self, turn_id: str, session_id: str = "") -> PlacedTurn | None:
        """`session_id`: "" for any."""
        found = await self._nodes([turn_id])
        return next((one for one in found if session_id in ("", one.session_id)), None)

    async def newest(self, kind: Kind, limit: int) -> list[PlacedTurn]:
        """The last ones of that kind, oldest first."""
        first, last, order = _span(kind)
        span = (last, first, order, "REV", "LIMIT", 0, limit)
        entries = await self._client.call("ZRANGE", self._keys.branch_index, *span)
        return (await self._of_kind(kind, entries))[-limit:]

    async def all(self, kind: Kind) -> list[PlacedTurn]:
        """In the order of recording."""
        return await self._of_kind(kind, await self._client.call("ZRANGE", self._keys.branch_index, *_span(kind)))

    async def count_before_known(self, kinds: Sequence[Kind]) -> int:
        """How many kinds have no entry before one that has; all if none has. Few are read where an early one has."""
        asked, at_once = 0, 1
        while asked < len(kinds):
            part = kinds[asked : asked + at_once]
            reading: list[Command] = [("ZRANGE", self._keys.branch_index, *_span(kind), "LIMIT", 0, 1) for kind in part]
            for number, entries in enumerate(await self._client.calls(reading)):
                if entries:
                    return asked + number
            asked, at_once = asked + len(part), at_once * 2
        return asked

    async def are_left_out(self, keys: Sequence[str]) -> list[bool]:
        reading: list[Command] = [("ZSCORE", self._keys.branch_index, branch_values.left_out(key)) for key in keys]
        return [score is not None for score in await self._client.calls(reading)]

    async def records(self, turn_ids: Sequence[str]) -> dict[str, TurnRecord]:
        """By id, without those that were deleted."""
        replies = await self._client.calls([read_command(self._keys, turn_id) for turn_id in turn_ids])
        records = (record_of(reply) for reply in replies)
        return {record.beginning.id: record for record in records if record is not None}

    def put(self, node: PlacedTurn) -> None:
        self._changed[node.turn_id] = node

    async def leaving_out(self, key: str, place: int) -> list[Command]:
        entry = branch_values.left_out(key)
        return [
            ("ZADD", self._keys.branch_index, 0, entry),
            ("ZADD", self._keys.branch_places, place, entry),
            *await self._pruning(place),
        ]

    async def commands(self) -> list[Command]:
        """What writes the changes."""
        keys, writing = self._keys, list[Command]()
        for node in self._changed.values():
            before = self._read.get(node.turn_id)
            had = branch_values.entries_of(before) if before is not None else frozenset()
            has = branch_values.entries_of(node)
            writing.append(("HSET", keys.branches, node.turn_id, branch_values.encode(node)))
            writing += [("ZREM", keys.branch_index, entry) for entry in sorted(had - has)]
            writing += [("ZADD", keys.branch_index, 0, entry) for entry in sorted(has - had)]
            if before is None:
                writing.append(("ZADD", keys.branch_places, node.position, node.turn_id))
                writing += await self._pruning(node.position)
        return writing

    async def _pruning(self, place: int) -> list[Command]:
        """Drops the oldest positions past the limit, now and then."""
        if place % tree_rules.PRUNED_EVERY:
            return []
        keys = self._keys
        found = await self._client.call("ZRANGE", keys.branch_places, 0, -tree_rules.POSITIONS_MAX)
        names = [name.decode() for name in found[:PRUNED_AT_ONCE]]
        nodes = {node.turn_id: node for node in await self._nodes(names)}
        writing: list[Command] = []
        for name in names:
            node = nodes.get(name)
            if node is not None and (not node.is_settled or name in self._changed):
                continue
            entries = [name] if node is None else sorted(branch_values.entries_of(node))
            writing += [("ZREM", keys.branch_index, *entries), ("ZREM", keys.branch_places, name)]
            writing.append(("HDEL", keys.branches, name))
        return writing

    async def _of_kind(self, kind: Kind, entries: Sequence[bytes]) -> list[PlacedTurn]:
        nodes = await self._nodes([*(kind.turn_id(entry) for entry in entries), *self._changed])
        found = {node.turn_id: node for node in nodes if kind.entry(node) in branch_values.entries_of(node)}
        return sorted(found.values(), key=lambda node: node.position)

    async def _nodes(self, turn_ids: Collection[str]) -> list[PlacedTurn]:
        asked = [turn_id for turn_id in dict.fromkeys(turn_ids) if turn_id not in self._read | self._changed]
        if asked:
            for stored in await self._client.call("HMGET", self._keys.branches, *asked):
                if stored is not None:
                    node = branch_values.decode(stored)
                    self._read[node.turn_id] = node
        known = self._read | self._changed
        return [known[turn_id] for turn_id in dict.fromkeys(turn_ids) if turn_id in known]


def _span(kind: Kind) -> tuple[bytes, bytes, str]:
    prefix = kind.prefix.encode()
    return b"[" + prefix, b"(" + prefix + b"\xff", "BYLEX"
