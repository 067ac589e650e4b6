"""Capabilities of the upstream's models on Redis: shared by all filters. The rules: `model_traits`."""

from __future__ import annotations

import msgspec

from memory.adapters.model_traits import LESSON_SECONDS_MAX, MODELS_MAX, RememberedPlacements, is_lesson, named
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.named_values import NamedValues
from memory.model import Placement
from memory.ports import Clock


class ModelLesson(msgspec.Struct, frozen=True):
    placement: Placement
    learnt_at: float


class RedisModelCapabilities:
    """`memory.ports.ModelCapabilities`."""

    def __init__(self, client: LogClient, *, clock: Clock) -> None:
        self._lessons = NamedValues(client, "model_traits", values_max=MODELS_MAX)
        self._clock = clock
        self._remembered = RememberedPlacements()

    async def placement(self, model: str) -> Placement | None:
        name, now = named(model), self._clock()
        known, is_known = self._remembered.get(name, now=now)
        if not is_known:
            known = _current(await self._lessons.get(name.encode()), now)
            self._remembered.put(name, known, now=now)
        return known

    async def learn(self, model: str, placement: Placement) -> None:
        name, now = named(model), self._clock()

        def learning(stored: bytes | None) -> tuple[Placement, bytes | None]:
            known = _current(stored, now)
            if known is not None and not is_lesson(known, placement):
                return known, None
            return placement, _ENCODER.encode(ModelLesson(placement, now))

        learnt = await self._lessons.change(name.encode(), learning, at=now)
        self._remembered.put(name, learnt, now=now)


def _current(stored: bytes | None, now: float) -> Placement | None:
    if stored is None:
        return None
    lesson = _LESSONS.decode(stored)
    return lesson.placement if lesson.learnt_at > now - LESSON_SECONDS_MAX else None


_ENCODER = msgspec.msgpack.Encoder()
_LESSONS = msgspec.msgpack.Decoder(ModelLesson)
