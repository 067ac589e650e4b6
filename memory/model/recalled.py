"""What a request finds, what it carries, and the receipt that tells why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memory.model.identity import Scope
from memory.model.memories import Memory


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. `text` is what gets embedded and matched by words."""

    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question to memory: what to look for, for whom, and when it is asked (Unix seconds).

    `memory_types`: none but these, where there are any. `told`: ids in earlier notes of the conversation, oldest first.
    """

    query: Query
    scope: Scope
    now: float
    memory_types: tuple[str, ...] = ()
    told: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory with what speaks for it: `parts` holds each score by name, `score` their sum. Higher is better.

    `tokens`: what its content costs on a line of a note; `wording`: equal for contents that say the same in the same
    words. None where that was not found out yet.
    """

    memory: Memory
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    tokens: int | None = None
    wording: int | None = None


class Verdict(StrEnum):
    """What became of a candidate, and why."""

    INJECTED = "injected"
    ALREADY_TOLD = "already_told"  # a note that this conversation carried before holds it
    IRRELEVANT = "irrelevant"
    DUPLICATE = "duplicate"
    OVER_BUDGET = "over_budget"  # of tokens
    OVER_LIMIT = "over_limit"  # of memories
    NOT_CHOSEN = "not_chosen"  # for no reason that the ranking named


@dataclass(frozen=True, slots=True)
class Selection:
    """What goes into the note, best first, what it costs, and why the other candidates stay out, by memory id."""

    candidates: tuple[Candidate, ...]
    tokens: int
    cuts: Mapping[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """Text for the model, and where it goes.

    `before` is the index, among the client's own messages, of the message that it stands right before, as a system
    message of its own; None merges it into the first message if that is a system message, else it becomes the first.
    """

    text: str
    before: int | None = None


@dataclass(frozen=True, slots=True)
class PastNote:
    """The text of a note as an earlier request carried it, the memories it holds, and what it costs."""

    text: str
    memory_ids: tuple[str, ...]
    tokens: int


class RecallStatus(StrEnum):
    """The values of the `x-memory-status` response header."""

    USED = "used"
    EMPTY = "empty"
    SKIPPED = "skipped"
    DISABLED = "disabled"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Weighed:
    """A candidate in a receipt: its id and scores, never its text."""

    memory_id: str
    score: float
    parts: Mapping[str, float]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CarriedNote:
    """A note in a receipt. `before` as in `Note`; one that is not new was put back from an earlier request."""

    before: int | None
    memory_ids: tuple[str, ...]
    tokens: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """Why a request got the memories that it got. No memory's text is in it: what is forgotten is gone here, too.

    `query` is in the user's own words. `candidates` are the best of those looked at, best first, and `left_out` counts
    the others. `timings_ms` has milliseconds by stage.
    """

    id: str
    user_id: str
    at: float
    status: RecallStatus
    reason: str
    signals: Mapping[str, Any] = field(default_factory=dict)
    query: str = ""
    candidates: tuple[Weighed, ...] = ()
    left_out: int = 0
    notes: tuple[CarriedNote, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)  # what the worker did about what the user asked of memory

    def memory_ids(self) -> tuple[str, ...]:
        """Every memory that the receipt names, once."""
        named = [note_id for note in self.notes for note_id in note.memory_ids]
        return tuple(dict.fromkeys([*named, *(candidate.memory_id for candidate in self.candidates)]))
