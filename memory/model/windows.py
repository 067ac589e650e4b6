"""The context window of a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelWindow:
    """`tokens`: of prompt and answer together. `per_estimate`: tokens of this model per token that we estimate."""

    tokens: int
    per_estimate: float = 1.0

    def __post_init__(self) -> None:
        assert self.tokens > 0
        assert self.per_estimate > 0
