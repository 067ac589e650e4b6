"""Whose turn an id is, over all users: a key per turn, with the digest of its user.

A name is claimed before its turn is recorded, and kept after that; a claim that nobody kept expires. Turns that are
deleted name themselves in a set of their user, until their names are deleted too.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.adapters.redis import log_keys, queue_values
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys

CLAIM_MILLISECONDS = 3_600_000  # by the server's own clock: only to make room after a death
RELEASED_AT_ONCE = 500

_CLAIM = """
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
return redis.call('GET', KEYS[1])
"""
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class TurnNames:
    """Ids of turns are unique over all users."""

    def __init__(self, client: LogClient) -> None:
        self._client = client

    async def claim(self, user_id: str, turn_ids: Sequence[str]) -> list[int | None]:
        """The place of each in the order of recording; None if it is a turn of somebody else.

        The names of those that are recorded must be kept (`keeping`).
        """
        digest = UserKeys(user_id).digest
        claiming: list[Command] = [
            ("EVAL", _CLAIM, 1, log_keys.user_of_turn(turn_id), digest, CLAIM_MILLISECONDS) for turn_id in turn_ids
        ]
        last, *owners = await self._client.calls([("INCRBY", log_keys.QUEUE_SEQ, len(turn_ids)), *claiming])
        places = range(int(last) - len(turn_ids) + 1, int(last) + 1)
        return [place if owner.decode() == digest else None for place, owner in zip(places, owners, strict=True)]

    def keeping(self, digest: str, turn_ids: Sequence[str]) -> list[Command]:
        """After the turns were recorded."""
        return [("SET", log_keys.user_of_turn(turn_id), digest) for turn_id in turn_ids]

    async def users_of(self, turn_ids: Sequence[str]) -> list[str | None]:
        """In that order; None for an unknown turn, and for one whose user has been erased meanwhile."""
        owners = await self._client.calls([("GET", log_keys.user_of_turn(turn_id)) for turn_id in turn_ids])
        digests = list(dict.fromkeys(owner.decode() for owner in owners if owner is not None))
        reading: list[Command] = []
        for keys in map(UserKeys.of_digest, digests):
            reading += [("GET", keys.user), ("HGET", keys.queue, "q")]
        replies = await self._client.calls(reading)
        users = {
            digest: queue_values.decode(queue, (user or b"").decode()).user_id or None
            for digest, user, queue in zip(digests, replies[::2], replies[1::2], strict=True)
        }
        return [None if owner is None else users[owner.decode()] for owner in owners]

    async def release(self, user_id: str, turn_ids: Sequence[str]) -> None:
        """Delete the names of these turns, which were deleted, and those that the dead left."""
        keys = UserKeys(user_id)
        for start in range(0, len(turn_ids), RELEASED_AT_ONCE):
            await self._release(keys, turn_ids[start : start + RELEASED_AT_ONCE])
        while left := await self._client.call("SRANDMEMBER", keys.deleted_names, RELEASED_AT_ONCE):
            await self._release(keys, [turn_id.decode() for turn_id in left])

    async def _release(self, keys: UserKeys, turn_ids: Sequence[str]) -> None:
        """A turn that was recorded again meanwhile is named again."""
        await self._client.calls([("EVAL", _RELEASE, 1, log_keys.user_of_turn(one), keys.digest) for one in turn_ids])
        exist = await self._client.calls([("EXISTS", keys.turn(turn_id)) for turn_id in turn_ids])
        recorded = [turn_id for turn_id, is_there in zip(turn_ids, exist, strict=True) if is_there]
        await self._client.calls(self.keeping(keys.digest, recorded))
        await self._client.call("SREM", keys.deleted_names, *turn_ids)
