"""Ports to models, for vectors, answers and context windows, and the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from memory.model import Message, ModelWindow, Vector

Clock: TypeAlias = Callable[[], float]
"""Unix seconds. Passed in; only `memory/processes/composition.py` uses the system clock."""


class Embedder(Protocol):
    """Text to vectors. Requests have priority over learning."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        """Unit vectors, shape `(len(texts), dimension)`, float32. Raises `Unavailable`.

        `as_query`: the texts are questions, which some models embed differently from documents.
        """


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a model. `is_cut`: it reached `max_tokens` and ends abruptly."""

    text: str
    is_cut: bool = False


class ChatModel(Protocol):
    """A language model that answers one request at a time. The caller has to validate its answers."""

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """The answer, at most 256 KB, within `seconds`.

        Raises `Unusable("model", …)` if this request was refused, or its answer cannot be parsed; `Unavailable("model",
        …)` if the model is down, too slow, or refuses all requests.

        With a JSON schema the model is asked to follow it; callers must not rely on that. Cancelling stops the
        generation.
        """


Tokens: TypeAlias = Callable[[str], int]
"""Counts tokens as the packaged encoder's tokenizer does, without a limit: an estimate for other models."""


class WindowSource(Protocol):
    """The model server's own information about its models. For use in the background, not in a request."""

    async def window(self, model: str) -> ModelWindow | None:
        """The window of this model; None if the server does not tell. Never raises."""


class ModelWindows(Protocol):
    def glance(self, model: str) -> ModelWindow | None:
        """The window if it is known; otherwise None, and it is found out in the background. Never waits."""
