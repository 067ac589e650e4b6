"""Turns in, candidate facts out: what every way of extracting promises, and the one that needs no model.

Extraction proposes; it never stores, and it never sees another user's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memory.learn.facts import Fact
from memory.learn.llm.heard import Heard
from memory.learn.statements import verbatim
from memory.model import Turn


class Learner(Protocol):
    """A way of extracting. Bounded in time by itself; raises `Unavailable("model", …)`, `Unusable` among them."""

    async def extract(
        self, turns: Sequence[Turn], *, context: Sequence[Turn], heard: Heard | None = None
    ) -> list[Fact]:
        """The facts of `turns`, all of one user and session, in order. `context`: up to a few turns before them.

        `heard`: where a model's answers are found again and noted.
        """
        ...


class VerbatimLearner:
    """Keeps the user's salient statements as they were said. No model, no waiting."""

    async def extract(
        self, turns: Sequence[Turn], *, context: Sequence[Turn], heard: Heard | None = None
    ) -> list[Fact]:
        return verbatim.extract(turns, context=context)


__all__ = ["Fact", "Learner", "VerbatimLearner"]
