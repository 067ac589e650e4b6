"""Times of recording on Redis, one value for all processes. The heartbeat shows which of them has died (`owners`)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping

import msgspec

from memory.adapters.redis import log_keys, recording_values
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.queue_store import COMMIT_IF_UNCHANGED, COMMIT_TRIES_MAX, PAUSE_SECONDS_MAX
from memory.adapters.redis.recording_values import NOBODY, Recorders, RecordingGap
from memory.errors import Unavailable
from memory.ports import Clock

GAPS_MAX = 1_000  # the newest


class RedisRecordingTimes:
    """`memory.ports.RecordingTimes`."""

    def __init__(self, client: LogClient, owners: RedisOwners, *, clock: Clock) -> None:
        self._client = client
        self._owners = owners
        self._clock = clock

    async def beat(self, *, missed_since: float | None = None) -> None:
        now, mine = self._clock(), self._owners.name
        _, last = await self._read()
        dead = [other for other in last if other != NOBODY and await self._owners.is_dead(other)]
        await self._change(
            lambda last: recording_values.beat(last, mine, dead=dead, now=now, missed_since=missed_since)
        )

    async def end(self) -> None:
        now, mine = self._clock(), self._owners.name
        await self._change(lambda last: recording_values.end(last, mine, now=now))

    async def gaps(self) -> list[RecordingGap]:
        return await read_gaps(self._client)

    async def _change(self, rule: Callable[[Mapping[str, float]], Recorders]) -> None:
        for _ in range(COMMIT_TRIES_MAX):
            version, last = await self._read()
            after = rule(last)
            if after.last == last and after.gap is None:
                return
            commands: list[Command] = [("HSET", log_keys.RECORDERS, "l", _ENCODER.encode(after.last))]
            if after.gap is not None:
                commands.append(("RPUSH", log_keys.RECORDING_GAPS, _ENCODER.encode(after.gap)))
                commands.append(("LTRIM", log_keys.RECORDING_GAPS, -GAPS_MAX, -1))
            words = [word for command in commands for word in (len(command), *command)]
            keys = [log_keys.RECORDERS, log_keys.RECORDING_GAPS]
            if await self._client.run(COMMIT_IF_UNCHANGED, keys, [version, secrets.token_hex(8), *words]):
                return
            await asyncio.sleep(secrets.randbelow(1000) / 1000 * PAUSE_SECONDS_MAX)
        raise Unavailable("turn_log", f"others changed the times of recording {COMMIT_TRIES_MAX} times meanwhile")

    async def _read(self) -> tuple[bytes, dict[str, float]]:
        version, stored = await self._client.call("HMGET", log_keys.RECORDERS, "v", "l")
        return version or b"", _LAST.decode(stored) if stored else {}


async def read_gaps(client: LogClient) -> list[RecordingGap]:
    """The newest, in the order in which they were found."""
    return [_GAPS.decode(gap) for gap in await client.call("LRANGE", log_keys.RECORDING_GAPS, 0, -1)]


_ENCODER = msgspec.msgpack.Encoder()
_LAST = msgspec.msgpack.Decoder(dict[str, float])
_GAPS = msgspec.msgpack.Decoder(RecordingGap)
