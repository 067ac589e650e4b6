"""Values of compaction: what replaces the early part of a long conversation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NEEDED = 1.0  # score of what a state keeps whatever it costs, unless a memory holds it


class StateItemKind(StrEnum):
    """What a sentence is in the state of a conversation."""

    DECISION = "decisions"
    FACT = "facts"
    ANSWER = "answers"  # of the assistant, with names and numbers that the user may come back to
    QUESTION = "open_questions"  # that the user has to settle


@dataclass(frozen=True, slots=True)
class StateItem:
    """One sentence. `score`: what it is worth against others, 0..1; from `NEEDED` on it has to stay."""

    kind: StateItemKind
    text: str
    score: float

    @property
    def is_needed(self) -> bool:
        return self.score >= NEEDED


@dataclass(frozen=True, slots=True)
class HistorySegment:
    """A part of a conversation: what it was about, and its sentences in the order said."""

    topic: str
    items: tuple[StateItem, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactedState:
    """The state of a conversation's first `cut` messages, oldest segment first.

    `text`: what the model is shown; `tokens`: of it; `replaced_tokens`: estimate for the messages that it replaces.
    """

    cut: int
    stretches: tuple[HistorySegment, ...]
    text: str
    tokens: int
    replaced_tokens: int

    @property
    def saved_tokens(self) -> int:
        return max(0, self.replaced_tokens - self.tokens)


@dataclass(frozen=True, slots=True)
class CompactedHistory:
    """The edit of one request: the messages before `end` are left out, except system messages; `text` replaces them."""

    end: int
    text: str
