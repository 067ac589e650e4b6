"""Finds out the context windows of models in the background, and remembers them. No request waits for it.

A model is asked about when a chat first names it; until the server has answered, its notes are not bounded.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress

from memory.model import ModelWindow
from memory.ports import Clock, WindowSource

MODELS_MAX = 1_000  # clients choose the names
WAITING_MAX = 100  # models to be asked about; a further one is asked about at its next chat
KNOWN_SECONDS = 600.0  # the model behind a name may be replaced
UNKNOWN_SECONDS = 60.0  # after a server that could not tell: it may have been starting or overloaded


class KnownWindows:
    """`memory.ports.ModelWindows`. One per process; `run` asks the server, and is the process's own task.

    `fixed`: tokens of every model's window, from the settings; 0: the server is asked.
    """

    def __init__(self, source: WindowSource, *, clock: Clock, fixed: int = 0) -> None:
        self._source = source
        self._clock = clock
        self._fixed = ModelWindow(fixed) if fixed else None
        self._known: OrderedDict[str, tuple[ModelWindow | None, float]] = OrderedDict()
        self._wanted: asyncio.Queue[str] = asyncio.Queue(WAITING_MAX)

    def glance(self, model: str) -> ModelWindow | None:
        """A window that has expired is used until the server has answered again."""
        if self._fixed is not None or not model:
            return self._fixed
        window, until = self._known.get(model, (None, 0.0))
        if self._clock() >= until:
            self._remember(model, window, UNKNOWN_SECONDS)  # until then nobody else asks about it
            with suppress(asyncio.QueueFull):
                self._wanted.put_nowait(model)
        return window

    async def run(self) -> None:
        """Ask the server about each wanted model, one after the other. Ends only by cancellation."""
        while True:
            model = await self._wanted.get()
            window = await self._source.window(model)
            if window is not None:
                self._remember(model, window, KNOWN_SECONDS)

    def _remember(self, model: str, window: ModelWindow | None, seconds: float) -> None:
        self._known[model] = (window, self._clock() + seconds)
        self._known.move_to_end(model)
        if len(self._known) > MODELS_MAX:
            self._known.popitem(last=False)
