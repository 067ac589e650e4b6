"""The results of recall: candidates, selection, notes, and the receipt that explains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memory.model.claim_filters import ANY_CLAIM, ClaimFilter
from memory.model.identity import Scope
from memory.model.memories import Memory
from memory.model.projects import SharedMemory


@dataclass(frozen=True, slots=True)
class Query:
    """What to search for. `text` is embedded and matched by words."""

    text: str


class AskedWhole(StrEnum):
    """What a question is about that asks for all that is known of it, and for no single memory."""

    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Question:
    """One question to memory: what to look for, for whom, and when it is asked (Unix seconds).

    `memory_types`: only these, if not empty. `in_notes`: ids in earlier notes of the conversation, oldest first.
    `claim`: only memories whose claim has these fields.
    `whole`: what it asks about as a whole; None for a question that some memories answer.
    """

    query: Query
    scope: Scope
    now: float
    memory_types: tuple[str, ...] = ()
    in_notes: Sequence[str] = ()
    claim: ClaimFilter = ANY_CLAIM
    whole: AskedWhole | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory with its score: `parts` are the score's parts by name, `score` their sum. Higher is better.

    `tokens`: cost of its content on a line of a note. `wording`: a number equal for contents with the same wording.
    None: not computed yet. `shared`: of a memory of a shared project.
    """

    memory: Memory
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    tokens: int | None = None
    wording: int | None = None
    shared: SharedMemory | None = None


class CandidateVerdict(StrEnum):
    """Whether a candidate was injected, or why not."""

    INJECTED = "injected"
    IN_PROFILE = "in_profile"  # not found for the question, but part of the profile that opens the note
    ALREADY_TOLD = "already_told"  # an earlier note of this conversation holds it
    IRRELEVANT = "irrelevant"
    DUPLICATE = "duplicate"
    OVER_BUDGET = "over_budget"  # of tokens
    OVER_LIMIT = "over_limit"  # of memories
    WITHHELD = "withheld"  # in a note that did not go along: shadow mode, or a conversation that is held out
    NOT_CHOSEN = "not_chosen"  # for a reason that the ranking did not give


@dataclass(frozen=True, slots=True)
class Selection:
    """The memories for the note, best first; its tokens; and the verdicts on the other candidates by memory id."""

    candidates: tuple[Candidate, ...]
    tokens: int
    cuts: Mapping[str, CandidateVerdict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """Text for the model, and its position.

    `before`: index of the client's message before which the note is inserted as a system message of its own. None: it
    is appended to the first message if that is a system message, otherwise it becomes the first message.
    """

    text: str
    before: int | None = None


@dataclass(frozen=True, slots=True)
class PastNote:
    """A note of an earlier request: its text, the ids of its memories, and its tokens.

    `made_at`: Unix seconds, when its memories were looked up; known of notes that a note book returns.
    """

    text: str
    memory_ids: tuple[str, ...]
    tokens: int
    made_at: float = field(default=0.0, compare=False)


class RecallStatus(StrEnum):
    """The values of the `x-memory-status` response header."""

    USED = "used"
    EMPTY = "empty"
    SKIPPED = "skipped"
    DISABLED = "disabled"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class ReceiptCandidate:
    """A candidate in a receipt: its id and scores, never its text."""

    memory_id: str
    score: float
    parts: Mapping[str, float]
    verdict: CandidateVerdict


@dataclass(frozen=True, slots=True)
class CarriedNote:
    """A note in a receipt. `before` as in `Note`; if not `is_new`, it was put back from an earlier request."""

    before: int | None
    memory_ids: tuple[str, ...]
    tokens: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """Explains which memories a request got, and why. Holds no memory's text, so that forgotten content is gone here
    too.

    `query`: in the user's words. `candidates`: the best of those examined, best first; `left_out`: the number of
    others. `timings_ms`: milliseconds by stage. `project_id`: of the chat; "" for none.
    """

    id: str
    user_id: str
    at: float
    status: RecallStatus
    reason: str
    signals: Mapping[str, Any] = field(default_factory=dict)
    query: str = ""
    candidates: tuple[ReceiptCandidate, ...] = ()
    left_out: int = 0
    notes: tuple[CarriedNote, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)  # what the worker did about the user's requests to memory
    project_id: str = ""

    def memory_ids(self) -> tuple[str, ...]:
        """The ids of all memories in the receipt, each once."""
        named = [note_id for note in self.notes for note_id in note.memory_ids]
        return tuple(dict.fromkeys([*named, *(candidate.memory_id for candidate in self.candidates)]))
