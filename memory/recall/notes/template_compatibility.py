"""Where each of the upstream's models takes notes: asked of the server once, and learnt from what it refuses.

A chat template may refuse a system message in the middle of a conversation, or any at all; the server then answers 400
to a chat that would have gone well without us. But a 400 has many causes, and one client's mistake must not take the
notes of everybody who uses that model. So the server is asked first; only where it cannot tell does a refusal count,
not against what the same model took lately, and nothing is switched off before it has refused several times in a row.
This step must never hold a request: it runs beside them, and never raises.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from contextlib import suppress
from typing import Generic, TypeVar

import structlog

from memory.errors import Unavailable
from memory.model import Placement
from memory.ports import ChatTemplates, Clock, ModelCapabilities
from memory.recall.notes.past_notes import placement_after_refusal
from memory.runtime.metrics import Metrics

MODELS_MAX = 1_000  # clients choose the names
ACCEPTED_SECONDS_MAX = 3_600.0  # how long a note that was taken speaks for the template: a model may be replaced
ASK_AGAIN_SECONDS = 60.0  # after a server that could not tell: it may have been starting, or busy
LAST_REFUSALS_MIN = 3  # in a row, before notes are switched off altogether; the first switch costs only a prefix
PROBE_SECONDS_MAX = 4.0  # for all that a server names: whoever starts waits for it
SHOWN_CHARACTERS = 80  # of a model's name, in a log line

_CAUTION = (Placement.BEFORE_LAST_USER, Placement.SYSTEM, Placement.OFF)

log = structlog.get_logger(__name__)

Value = TypeVar("Value")


class TemplateCompatibility:
    """What is known beyond the traits belongs to this process, and is bounded. One per process."""

    def __init__(
        self, *, model_capabilities: ModelCapabilities, templates: ChatTemplates, clock: Clock, metrics: Metrics
    ) -> None:
        self._model_capabilities = model_capabilities
        self._templates = templates
        self._clock = clock
        self._metrics = metrics
        self._switching = asyncio.Lock()  # so that what two learn at once is news only once
        self._known_until: _Recent[float] = _Recent()
        self._probing: set[str] = set()
        self._accepted_at: _Recent[float] = _Recent()
        self._refusals: _Recent[int] = _Recent()

    def is_new(self, model: str) -> bool:
        """Whether nobody has found out about that model yet, nor is about to: then `meet` it."""
        known_until = self._known_until.get((model, None))
        return model not in self._probing and (known_until is None or self._clock() >= known_until)

    async def probe(self, model: str) -> None:
        """Ask the server about the model's template, unless something is known already.

        A model counts as met once that is answered; of a server that could not tell it is asked again after a minute.
        """
        self._probing.add(model)
        known_until = self._clock() + ASK_AGAIN_SECONDS
        try:
            if await self._model_capabilities.placement(model) is None:
                placement = await self._templates.placement(model)
                await self._switch(model, placement, source="asked")
                if placement is None:
                    return
            known_until = math.inf
        except Unavailable:
            return
        finally:
            self._probing.discard(model)
            self._known_until.put((model, None), known_until)

    async def probe_served_models(self) -> None:
        """Meet the models that the server names, so that the first chat of each finds its placement known.

        Where it names none, or does not answer in time, a model is met at its first chat.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(PROBE_SECONDS_MAX):
                await asyncio.gather(*(self.probe(model) for model in await self._templates.models()))

    def accepted(self, model: str, placement: Placement) -> None:
        """The upstream took a request of that model with a note there."""
        self._accepted_at.put((model, placement), self._clock())
        self._refusals.drop((model, placement))

    async def refused(self, model: str, placement: Placement) -> None:
        """The upstream answered 400 to a request of that model with a note there, for whatever reason."""
        with suppress(Unavailable):
            supported = await self._templates.placement(model)
            if supported is not None:
                await self._switch(model, supported, source="asked")
            elif self._is_convincing(model, placement):
                await self._switch(model, placement_after_refusal(placement), source="refused")

    def _is_convincing(self, model: str, placement: Placement) -> bool:
        accepted_at = self._accepted_at.get((model, placement))
        if accepted_at is not None and self._clock() - accepted_at < ACCEPTED_SECONDS_MAX:
            return False
        refusals = (self._refusals.get((model, placement)) or 0) + 1
        self._refusals.put((model, placement), refusals)
        return placement is Placement.BEFORE_LAST_USER or refusals >= LAST_REFUSALS_MIN

    async def _switch(self, model: str, placement: Placement | None, *, source: str) -> None:
        """Make it known to all, if it is news. `source` is a label for the metric."""
        if placement is None:
            return
        async with self._switching:
            known = await self._model_capabilities.placement(model) or Placement.BEFORE_LAST_USER
            if _CAUTION.index(placement) <= _CAUTION.index(known):
                return
            await self._model_capabilities.learn(model, placement)
        self._metrics.placement_switched.labels(placement, source).inc()
        log.warning("placement_switched", model=model[:SHOWN_CHARACTERS], placement=str(placement), source=source)


class _Recent(Generic[Value]):
    """A bounded dictionary by model and placement that forgets what was put in longest ago."""

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[str, Placement | None], Value] = OrderedDict()

    def get(self, key: tuple[str, Placement | None]) -> Value | None:
        return self._values.get(key)

    def put(self, key: tuple[str, Placement | None], value: Value) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > MODELS_MAX:
            self._values.popitem(last=False)

    def drop(self, key: tuple[str, Placement | None]) -> None:
        self._values.pop(key, None)


__all__ = ["TemplateCompatibility"]
