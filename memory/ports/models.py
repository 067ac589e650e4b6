"""The models that we ask: for vectors, for an answer; and the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from memory.model import (
    Message,
    Vector,
)

Clock: TypeAlias = Callable[[], float]
"""Unix seconds. Handed in; only `memory/processes/composition.py` knows the real one."""


class Embedder(Protocol):
    """Text to vectors. Requests go ahead of learning."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        """Unit vectors, shape `(len(texts), dimension)`, float32. Raises `Unavailable`.

        `as_query`: the texts are questions, which some models embed otherwise than what is to be found.
        """
        ...


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered. `is_cut`: it had more to say than `max_tokens`, so that the text breaks off anywhere."""

    text: str
    is_cut: bool = False


class ChatModel(Protocol):
    """A language model that answers one request at a time. What it says is a proposal, to be checked by the caller."""

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """The answer, at most 256 KB, within `seconds`.

        Raises `Unusable("model", …)` where this request got no answer that can be read, or was refused as a bad one;
        `Unavailable("model", …)` where the model is away, too slow, or refuses everybody.

        With a JSON schema the model is asked to follow it, which no caller may rely on. Cancelled, it is told to stop.
        """
        ...


class Tokens(Protocol):
    """Counts tokens as the embedding model's WordPiece does, with truncation off: an estimate for other models."""

    def __call__(self, text: str) -> int: ...
