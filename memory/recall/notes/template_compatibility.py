"""Finds out where the chat template of each upstream model accepts notes: asks the server, or learns from refusals.

A chat template may refuse a system message in the middle of a conversation, or any system message; the server then
refuses a chat that would have succeeded without our note. But a refusal has many causes, and one client's mistake must
not change the notes of everybody who uses that model. So the server is asked first. Only if it cannot tell do
refusals count: not against a placement that the model accepted recently, and notes are switched off only after several
refusals in a row. Never delays a request, and never raises.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress

import structlog

from memory.errors import Unavailable
from memory.model import Placement
from memory.ports import ChatTemplates, Clock, ModelCapabilities
from memory.runtime.metrics import Metrics
from memory.runtime.recent import Recent

MODELS_MAX = 1_000  # clients choose the names
# How long an accepted note proves that the template takes it: the model behind a name may be replaced.
ACCEPTED_SECONDS_MAX = 3_600.0
ASK_AGAIN_SECONDS = 60.0  # after a server that could not tell: it may have been starting or overloaded
LAST_REFUSALS_MIN = 3  # in a row, before notes are switched off altogether; the first switch costs only a prefix
PROBE_SECONDS_MAX = 4.0  # for all models that a server lists: the start of a process waits for it
SHOWN_CHARACTERS = 80  # of a model's name, in a log line

BY_CAUTION = (Placement.BEFORE_LAST_USER, Placement.SYSTEM, Placement.OFF)

log = structlog.get_logger(__name__)


class TemplateCompatibility:
    """One per process. Placements are shared through `ModelCapabilities`; all other state is local and bounded."""

    def __init__(
        self, *, model_capabilities: ModelCapabilities, templates: ChatTemplates, clock: Clock, metrics: Metrics
    ) -> None:
        self._model_capabilities = model_capabilities
        self._templates = templates
        self._clock = clock
        self._metrics = metrics
        self._switching = asyncio.Lock()  # so that two concurrent findings change a placement only once
        self._known_until: Recent[str, float] = Recent(MODELS_MAX)
        self._probing: set[str] = set()
        self._accepted_at: Recent[tuple[str, Placement], float] = Recent(MODELS_MAX)
        self._refusals: Recent[tuple[str, Placement], int] = Recent(MODELS_MAX)

    def is_new(self, model: str) -> bool:
        """Whether this model has not been probed, nor is being probed now; the caller then calls `probe`."""
        known_until = self._known_until.get(model)
        return model not in self._probing and (known_until is None or self._clock() >= known_until)

    async def probe(self, model: str) -> None:
        """Ask the server about the model's template, unless its placement is known; again, if it could not tell."""
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
            self._known_until[model] = known_until

    async def probe_served_models(self) -> None:
        """So that the placement of what the server lists is known at the first chat, when others are probed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PROBE_SECONDS_MAX):
                await asyncio.gather(*(self.probe(model) for model in await self._templates.models()))

    def accepted(self, model: str, placement: Placement) -> None:
        """The upstream accepted a request for that model with a note at `placement`."""
        self._accepted_at[model, placement] = self._clock()
        self._refusals.pop((model, placement), None)

    async def refused(self, model: str, placement: Placement) -> None:
        """The upstream refused a request for that model with a note at `placement`, for whatever reason."""
        with suppress(Unavailable):
            supported = await self._templates.placement(model)
            if supported is not None:
                await self._switch(model, supported, source="asked")
            elif self._is_convincing(model, placement):
                is_first = placement is Placement.BEFORE_LAST_USER
                await self._switch(model, Placement.SYSTEM if is_first else Placement.OFF, source="refused")

    def _is_convincing(self, model: str, placement: Placement) -> bool:
        accepted_at = self._accepted_at.get((model, placement))
        if accepted_at is not None and self._clock() - accepted_at < ACCEPTED_SECONDS_MAX:
            return False
        refusals = self._refusals.get((model, placement), 0) + 1
        self._refusals[model, placement] = refusals
        return placement is Placement.BEFORE_LAST_USER or refusals >= LAST_REFUSALS_MIN

    async def _switch(self, model: str, placement: Placement | None, *, source: str) -> None:
        """Store the placement for all processes if it is more careful than the known one."""
        if placement is None:
            return
        async with self._switching:
            known = await self._model_capabilities.placement(model) or Placement.BEFORE_LAST_USER
            if BY_CAUTION.index(placement) <= BY_CAUTION.index(known):
                return
            await self._model_capabilities.learn(model, placement)
        self._metrics.placement_switched.labels(placement, source).inc()
        log.warning("placement_switched", model=model[:SHOWN_CHARACTERS], placement=str(placement), source=source)
