"""Finds out the context windows of models in the background, and remembers them. No request waits for it.

A model is asked about when a chat first names it; until the server answers, or refuses a request for its length, which
tells as much, its notes are not bounded.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from dataclasses import dataclass, replace

from memory.model import ModelWindow
from memory.ports import Clock, WindowSource
from memory.runtime.recent import Recent

MODELS_MAX = 1_000  # clients choose the names
WAITING_MAX = 100  # models to be asked about; a further one is asked about at its next chat
KNOWN_SECONDS = 600.0  # the model behind a name may be replaced
MODEL_CHARACTERS_MAX = 256  # no server has longer names
LEARNT_SECONDS = 86_400.0  # from a refusal; then one request may be refused again
CORRECTION_STEP, CORRECTION_MAX = 1.15, 1.6  # of our estimate, for each refusal of a request that it let through
UNKNOWN_SECONDS = 60.0  # after a server that could not tell: it may have been starting or overloaded


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """`ask_at`, `forget_at`: Unix seconds; the server's own answers are not forgotten."""

    window: ModelWindow | None = None
    ask_at: float = 0.0
    forget_at: float = math.inf


class KnownWindows:
    """`memory.ports.ModelWindows`. One per process; `run` asks the server, and is the process's own task."""

    def __init__(self, source: WindowSource, *, clock: Clock, fixed: int = 0) -> None:
        """`fixed`: tokens of every model's window, from the settings; 0: the server is asked."""
        self._source = source
        self._clock = clock
        self._fixed = ModelWindow(fixed) if fixed else None
        self._known: Recent[str, _Knowledge] = Recent(MODELS_MAX)
        self._wanted: asyncio.Queue[str] = asyncio.Queue(WAITING_MAX)

    def glance(self, model: str) -> ModelWindow | None:
        """A window that has expired is used until the server has answered again."""
        if self._fixed is not None or not model:
            return self._fixed
        known, now = self._known.get(model, _Knowledge()), self._clock()
        if now >= known.forget_at:
            known = _Knowledge()
        if now >= known.ask_at:
            known = replace(known, ask_at=now + UNKNOWN_SECONDS)  # until then nobody else asks about it
            self._known[model] = known
            with suppress(asyncio.QueueFull):
                self._wanted.put_nowait(model)
        return known.window

    def learn(self, model: str, tokens: int) -> None:
        """The server refused a request: `tokens` of prompt and answer together are its limit. If that was known, our
        estimate is corrected by a step.
        """
        if self._fixed is not None or not model or len(model) > MODEL_CHARACTERS_MAX:
            return
        known, now = self._known.get(model, _Knowledge()), self._clock()
        before = known.window
        per_estimate = 1.0 if before is None else before.per_estimate
        if before is not None and before.tokens == tokens:
            per_estimate = max(per_estimate, min(per_estimate * CORRECTION_STEP, CORRECTION_MAX))
        window = ModelWindow(tokens, per_estimate)
        self._known[model] = _Knowledge(window, known.ask_at, now + LEARNT_SECONDS)

    async def run(self) -> None:
        """Ask the server about each wanted model, one after the other. Ends only by cancellation."""
        while True:
            model = await self._wanted.get()
            window = await self._source.window(model)
            if window is not None:
                self._known[model] = _Knowledge(window, self._clock() + KNOWN_SECONDS)
