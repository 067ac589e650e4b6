"""Erasures on Redis, by the digest of the user's id, each under a key of its own.

That of an erased part of a user begins with the same digest. Ids are listed twice, of all and of each user.

Whatever a process breaks off ends by itself: an id is in the list of all before there is its record, and until that is
gone, so `expire` finds both; it is in the list of its user only while there is a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.user_index import Look, Marked, UserIndex
from memory.errors import Unavailable
from memory.ports.erasures import ERASURES_PER_USER_MAX, ErasureRecord, ErasureRequest, ScanReport

PENDING_MAX = 500
PAGE = 200
SUBJECT_SEPARATOR = "."  # between the digests of a user and of an erased part
# Digests of user and part, what was deleted, when files were rewritten, what a scan found.
FIELDS = ("u", "r", "w", "s")


class RedisErasures:
    """`memory.ports.erasures.Erasures`."""

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._pending = UserIndex(client, log_keys.PENDING_ERASURES)

    async def begun(self, user_id: str, request: ErasureRequest, *, part: str = "") -> None:
        user, marking = UserKeys(user_id).digest, self._pending.marking(request.id)
        await self._client.calls([marking, _listing(request.id, *log_keys.ERASURES)])
        fields = ("u", _subject(user_id, part), "r", _ENCODER.encode(request))
        key = log_keys.erasure(request.id)
        # In this order: who has just rewritten files for the earlier request must not find it still there.
        await self._client.calls([("HSET", key, *fields), ("HDEL", key, "w")])
        listing = _listing(request.id, *log_keys.ERASURES, log_keys.erasures_of(user))
        _, too_many = await self._client.calls([marking, listing])
        with suppress(Unavailable):  # this one is recorded, and the next deletes what is too many
            await self._delete_too_many([one.decode() for one in too_many], user)

    async def get(self, user_id: str, erasure_id: str, *, part: str = "") -> ErasureRecord | None:
        subject, *fields = await self._client.call("HMGET", log_keys.erasure(erasure_id), *FIELDS)
        return _record(*fields) if subject == _subject(user_id, part).encode() else None

    async def last_scan(self, user_id: str, *, part: str | None = None) -> ScanReport | None:
        scans = await self._scans(UserKeys(user_id).digest)
        reports = [report for _, found, report in scans if part is None or found == _subject(user_id, part)]
        return max(reports, key=lambda report: report.scanned_at, default=None)

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

    async def expire(self, *, before: float) -> None:
        passed = 0
        while ids := await self._client.call("ZRANGE", log_keys.ERASURES[0], passed, passed + PAGE - 1):
            keys = [log_keys.erasure(one.decode()) for one in ids]
            rows = await self._client.calls([("HMGET", key, "u", "w") for key in keys])
            ended = [
                (one.decode(), subject.decode().partition(SUBJECT_SEPARATOR)[0])
                for one, (subject, rewritten) in zip(ids, rows, strict=True)
                if subject is not None and rewritten is not None and float(rewritten) < before
            ]
            # Broken off, or just beginning: whoever writes the record lists it again.
            without_record = [one.decode() for one, (subject, _) in zip(ids, rows, strict=True) if subject is None]
            await self._delete(ended)
            await self._unlist(without_record)
            passed += len(ids) - len(ended) - len(without_record)

    async def _scans(self, user: str) -> list[tuple[str, str, ScanReport]]:
        """Of one user by digest: the erasures that have one, with the digests of their subjects."""
        ids = [one.decode() for one in await self._client.call("ZRANGE", log_keys.erasures_of(user), 0, -1)]
        rows = await self._client.calls([("HMGET", log_keys.erasure(one), "u", "s") for one in ids])
        pairs = zip(ids, rows, strict=True)
        return [(one, subject.decode(), _SCANS.decode(scan)) for one, (subject, scan) in pairs if subject and scan]

    async def _delete_too_many(self, erasures: Sequence[str], user: str) -> None:
        """All of these but the one with the user's last look."""
        if erasures:
            looks = {one: report for one, _, report in await self._scans(user)}
            kept = max(looks, key=lambda one: looks[one].scanned_at, default="")
            await self._delete([(one, user) for one in erasures if one != kept])

    async def _delete(self, erasures: Sequence[tuple[str, str]]) -> None:
        """By id and digest of the user. The list of all comes last: by it, what is broken off is found by `expire`."""
        await self._client.calls([("ZREM", log_keys.erasures_of(user), one) for one, user in erasures])
        await self._client.calls([("DEL", log_keys.erasure(one)) for one, _ in erasures])
        await self._unlist(one for one, _ in erasures)

    async def _unlist(self, erasures: Iterable[str]) -> None:
        await self._client.calls([("ZREM", log_keys.ERASURES[0], one) for one in erasures])

    async def _look(self, page: Sequence[Marked]) -> list[Look[ErasureRequest]]:
        replies = await self._client.calls([("HMGET", log_keys.erasure(marked.member), "r", "w") for marked in page])
        return [
            Look(_REQUESTS.decode(request), marked.place) if request and not rewritten else Look(None, None)
            for marked, (request, rewritten) in zip(page, replies, strict=True)
        ]


def _listing(erasure_id: str, *lists: str) -> Command:
    return ("EVAL", _LIST, len(lists), *lists, erasure_id, ERASURES_PER_USER_MAX)


def _subject(user_id: str, part: str) -> str:
    user = UserKeys(user_id).digest
    return f"{user}{SUBJECT_SEPARATOR}{log_keys.digest_of(part)}" if part else user


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
# KEYS: erasures by number, the last number, and those of the user by number once there is a record. ARGV: an erasure,
# and how many a user may have. One that is begun again keeps its place. Returns those of the user that are too many.
_LIST = """
local number = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not number then
  number = redis.call('INCR', KEYS[2])
  redis.call('ZADD', KEYS[1], number, ARGV[1])
end
if not KEYS[3] then return {} end
redis.call('ZADD', KEYS[3], number, ARGV[1])
return redis.call('ZRANGE', KEYS[3], 0, -1 - tonumber(ARGV[2]))
"""
_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS = msgspec.msgpack.Decoder(ErasureRequest)
_SCANS = msgspec.msgpack.Decoder(ScanReport)
