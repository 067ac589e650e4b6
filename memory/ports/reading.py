"""Who reads messages: what was said becomes claims, and a new claim is held against an older memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from memory.model import Claim, Turn


class PairRelation(StrEnum):
    """What a newer statement does to an older one."""

    SAME = "same"  # says it again
    REPLACES = "replaces"  # the older one does not hold any more
    UNRELATED = "unrelated"  # both stand


@dataclass(frozen=True, slots=True)
class StatementPair:
    """Two statements of one user, in their own words; `older` was said first."""

    older: str
    newer: str


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """`confidence` lies in 0..1."""

    relation: PairRelation
    confidence: float


class StatementReader(Protocol):
    """The only part that understands what a sentence means. Two implementations: a chat model, and our encoder.

    Deterministic or not, it proposes: checks look at every claim again. It never sees another user's words.
    """

    @property
    def name(self) -> str:
        """What stands in `made_by` of what it read: the kind, with the version of its weights or prompt."""
        ...

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        """The claims of `turns`, all of one user and session, in the order said.

        `context`: up to a few turns before them, oldest first; no claim is made of those. Each claim quotes a message
        of `turns`, word for word. Bounded in time. Raises `Unavailable("model", …)`, `Unusable` among them.
        """
        ...

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        """One verdict for each pair, in order. Raises `Unavailable("model", …)`, `Unusable` among them."""
        ...


@dataclass(frozen=True, slots=True)
class ExamKey:
    """Who sat which exam: a model's name, where it answers, and the version of its prompts and of the exam."""

    model: str
    server: str
    version: str


@dataclass(frozen=True, slots=True)
class ExamResult:
    """`score` lies in 0..1, for people to compare; `failures` names the chats and pairs that went wrong."""

    passed: bool
    score: float
    failures: tuple[str, ...] = ()


class ExamResults(Protocol):
    """What exams showed, shared by all workers, bounded. Raises `Unavailable`.

    A failed exam is forgotten after a day, a passed one after a month: the model behind a name may have been replaced.
    """

    async def get(self, key: ExamKey) -> ExamResult | None:
        """None where nothing is known, or not any more."""
        ...

    async def put(self, key: ExamKey, result: ExamResult) -> None:
        """In place of an earlier result of that key; durable on return."""
        ...
