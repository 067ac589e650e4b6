"""Erasures on Redis, by the digest of the user's id, each under a key of its own."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.user_index import Look, Marked, UserIndex
from memory.ports.erasures import ErasureRecord, ErasureRequest, ScanReport

PENDING_MAX = 500
FIELDS = ("u", "r", "w", "s")  # the user's digest, what was deleted, when the files were rewritten, what a scan found


class RedisErasures:
    """`memory.ports.erasures.Erasures`."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._pending = UserIndex(client, log_keys.PENDING_ERASURES)

    async def begun(self, user_id: str, request: ErasureRequest) -> None:
        marking = self._pending.marking(request.id)
        listing = ("EVAL", _LIST, 2, *log_keys.ERASURES, request.id)
        await self._client.calls([marking, listing])
        fields = ("u", UserKeys(user_id).digest, "r", _ENCODER.encode(request))
        key = log_keys.erasure(request.id)
        await self._client.calls([("HDEL", key, "w"), ("HSET", key, *fields)])
        await self._client.calls([marking])

    async def get(self, user_id: str, erasure_id: str) -> ErasureRecord | None:
        user, *fields = await self._client.call("HMGET", log_keys.erasure(erasure_id), *FIELDS)
        return _record(*fields) if user == UserKeys(user_id).digest.encode() else None

    async def latest(self, *, limit: int) -> Sequence[ErasureRecord]:
        ids = await self._client.call("ZRANGE", log_keys.ERASURES[0], 0, limit - 1, "REV")
        reading: list[Command] = [("HMGET", log_keys.erasure(one.decode()), *FIELDS[1:]) for one in ids]
        return [_record(*fields) for fields in await self._client.calls(reading) if fields[0] is not None]

    async def pending(self) -> Sequence[ErasureRequest]:
        return await self._pending.search(self._look, limit=PENDING_MAX)

    async def rewritten(self, erasures: Sequence[ErasureRequest], *, at: float) -> None:
        words = [(log_keys.erasure(one.id), _ENCODER.encode(one), repr(at)) for one in erasures]
        await self._client.calls([("EVAL", _IF_UNCHANGED, 1, *one) for one in words])

    async def scanned(self, erasure_id: str, report: ScanReport) -> None:
        words = (log_keys.erasure(erasure_id), _ENCODER.encode(report))
        await self._client.call("EVAL", _IF_KNOWN, 1, *words)

    async def _look(self, page: Sequence[Marked]) -> list[Look[ErasureRequest]]:
        replies = await self._client.calls([("HMGET", log_keys.erasure(marked.member), "r", "w") for marked in page])
        return [
            Look(_REQUESTS.decode(request), marked.place) if request and not rewritten else Look(None, None)
            for marked, (request, rewritten) in zip(page, replies, strict=True)
        ]


def _record(request: bytes, rewritten: bytes | None, scan: bytes | None) -> ErasureRecord:
    return ErasureRecord(
        _REQUESTS.decode(request),
        None if rewritten is None else float(rewritten),
        None if scan is None else _SCANS.decode(scan),
    )


# KEYS: an erasure. ARGV: what a scan of it found.
_IF_KNOWN = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('HSET', KEYS[1], 's', ARGV[1])
"""
# KEYS: an erasure. ARGV: what was deleted, as it was when its files were found waiting, and when these were rewritten.
_IF_UNCHANGED = """
if redis.call('HGET', KEYS[1], 'r') ~= ARGV[1] then return 0 end
return redis.call('HSETNX', KEYS[1], 'w', ARGV[2])
"""
# KEYS: erasures by number, the last number. One that is begun again keeps its place.
_LIST = """
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
return redis.call('ZADD', KEYS[1], redis.call('INCR', KEYS[2]), ARGV[1])
"""
_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS = msgspec.msgpack.Decoder(ErasureRequest)
_SCANS = msgspec.msgpack.Decoder(ScanReport)
