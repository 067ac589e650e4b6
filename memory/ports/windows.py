"""The context windows of the upstream's models."""

from __future__ import annotations

from typing import Protocol

from memory.model import ModelWindow


class WindowSource(Protocol):
    """The model server's own information about its models. For use in the background, not in a request."""

    async def window(self, model: str) -> ModelWindow | None:
        """The window of this model; None if the server does not tell. Never raises."""
        ...


class ModelWindows(Protocol):
    """What is known about windows now."""

    def glance(self, model: str) -> ModelWindow | None:
        """The window if it is known; otherwise None, and it is found out in the background. Never waits."""
        ...
