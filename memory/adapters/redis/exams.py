"""Exam results of chat models on Redis: shared by all workers, read at their start. They expire: see `exam_rules`."""

from __future__ import annotations

import msgspec

from memory.adapters.exam_rules import FAILED_SECONDS_MAX, PASSED_SECONDS_MAX, RESULTS_MAX, named
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.named_values import NamedValues
from memory.ports import Clock
from memory.ports.reading import ExamKey, ExamResult


class StoredResult(msgspec.Struct, frozen=True):
    result: ExamResult
    sat_at: float


class RedisExamResults:
    """`memory.ports.reading.ExamResults`."""

    def __init__(self, client: LogClient, *, clock: Clock) -> None:
        self._results = NamedValues(client, "exam_results", values_max=RESULTS_MAX)
        self._clock = clock

    async def get(self, key: ExamKey) -> ExamResult | None:
        found = await self._results.get(_ENCODER.encode(named(key)))
        if found is None:
            return None
        stored = _RESULTS.decode(found)
        seconds = PASSED_SECONDS_MAX if stored.result.passed else FAILED_SECONDS_MAX
        return stored.result if stored.sat_at > self._clock() - seconds else None

    async def put(self, key: ExamKey, result: ExamResult) -> None:
        now = self._clock()
        value = _ENCODER.encode(StoredResult(result, now))
        await self._results.change(_ENCODER.encode(named(key)), lambda _: (None, value), at=now)


_ENCODER = msgspec.msgpack.Encoder()
_RESULTS = msgspec.msgpack.Decoder(StoredResult)
