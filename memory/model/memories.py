"""A memory: one fact about a user, with its evidence, its history and its versions."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from memory.errors import BadInput
from memory.model.identity import is_valid_owner

CONFIDENCE_STEP = 0.3  # of what is missing to certainty: a repetition adds it, and loses it when it is forgotten
CONTENT_CHARACTERS_MAX = 8_000  # of one memory as stored; the gate of learning is stricter (2,000)
TIME_MAX = 253_402_300_799.0  # the last second of the year 9999, the limit of ISO 8601 with four digits
Row = TypeVar("Row")


Vector: TypeAlias = npt.NDArray[np.float32]
"""One embedding, shape `(dimension,)`, unit length; or several, shape `(n, dimension)`."""


class MemoryStatus(StrEnum):
    """Only active memories are recalled; superseded and archived ones can be restored until they are forgotten."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"  # something said later replaced it
    ARCHIVED = "archived"  # beyond the quota, a duplicate, unused for long, or of an abandoned branch
    RAW = "raw"  # what was said in a turn, as said: no memory at all (`memory.model.raw_words`)


class Trust(StrEnum):
    """How a memory was created, from the most to the least trusted."""

    BOOTSTRAPPED = "bootstrapped"  # given by an application or an import
    EXPLICIT = "explicit"  # the user asked for it to be remembered, or corrected it
    INFERRED = "inferred"  # the user said it in passing
    TOOL = "tool"  # derived from other memories, not from anybody's words


class MemoryVisibility(StrEnum):
    """Who may read a memory: its author, the members of its project, or whoever uses the project's id in its tenant."""

    OWNER_ONLY = "owner_only"
    MEMBERS = "members"
    PUBLIC = "public"


NO_ATTRIBUTE = "none"
API_SOURCE = "api"  # of a memory: an application said it, in its own words

MEMORY_TYPES = ("semantic", "procedural", "episodic", "reflective")


Category: TypeAlias = Literal[
    "preference", "fact", "skill", "habit", "event", "context", "constraint", "decision", "goal", "correction"
]
CATEGORIES: tuple[str, ...] = get_args(Category)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The source of a memory: `quote` is an exact substring of a message of `role` in turn `turn_id`.

    `clause`: the words of the quote that say this fact; "" in rows of older releases. Facts of a sentence share it.
    """

    quote: str
    turn_id: str
    role: str = "user"
    clause: str = ""

    @property
    def words(self) -> str:
        """Those of the quote that say the fact."""
        return self.clause or self.quote

    @property
    def is_part(self) -> bool:
        """Whether the quote says more than this fact."""
        return self.clause not in ("", self.quote)

    @property
    def sentence_id(self) -> str:
        """Equal for the facts of one sentence of one turn; "" if the sentence says nothing else."""
        return _digest(f"{self.turn_id}\x1f{self.quote}") if self.is_part else ""

    @property
    def alone(self) -> Evidence:
        """Only these words, without the rest of their sentence."""
        return Evidence(self.words, self.turn_id, self.role, self.clause)

    @property
    def fields(self) -> list[str]:
        """As stored: the clause if it is known."""
        return [self.quote, self.turn_id, str(self.role), self.clause][: 4 if self.clause else 3]


@dataclass(frozen=True, slots=True)
class Memory:
    """One fact about a user.

    Valid time: `valid_from` to `invalid_at` (None: open). System time: `created_at`, `updated_at`, `superseded_at`.
    `said_at`: when the user said it, which decides what supersedes what. Importance and confidence: 0..1.
    """

    id: str
    user_id: str
    content: str
    created_at: float
    updated_at: float
    said_at: float
    project_id: str = ""
    session_id: str = ""
    agent_id: str = ""
    memory_type: str = "semantic"
    category: str = "fact"
    source: str = "conversation"  # conversation, api, import; answer: raw words of the assistant
    status: MemoryStatus = MemoryStatus.ACTIVE
    importance: float = 0.5
    confidence: float = 1.0
    access_count: int = 0
    valid_from: float | None = None
    invalid_at: float | None = None
    superseded_at: float | None = None
    superseded_by: str = ""
    # Valid time after which it is of little use; lowers its rank, never changes its status.
    expires_at: float | None = None
    used_at: float | None = None  # when it was last part of a prompt, as far as counted
    trust: Trust = Trust.INFERRED
    made_by: str = ""  # the reader that created it, with the version of its weights or prompt
    subject: str = "user"  # whom it is about: one of `Relation`, or the word of whoever stored it
    name: str = ""  # of that person or pet
    attribute: str = NO_ATTRIBUTE  # one of the table in `claims`
    values: tuple[str, ...] = ()  # the words of `content` that would differ if the fact changed
    is_affirmed: bool = True  # False where it denies
    evidence: tuple[Evidence, ...] = ()
    utc_offset: int | None = None  # of the user's zone when it was said, in seconds east of UTC; None: unknown
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # Of a memory that is shown to somebody; no part of its row: `memory.ports.projects` decides it.
    visibility: MemoryVisibility = MemoryVisibility.OWNER_ONLY

    def __post_init__(self) -> None:
        if not is_valid_owner(self.user_id):
            raise BadInput("a memory needs a valid user_id")
        if not self.content.strip() or len(self.content) > CONTENT_CHARACTERS_MAX:
            raise BadInput(f"content must have 1 to {CONTENT_CHARACTERS_MAX} characters, not only white space")
        if self.memory_type not in MEMORY_TYPES:
            raise BadInput(f"memory_type must be one of {', '.join(MEMORY_TYPES)}; got {self.memory_type!r:.40}")
        if not (0.0 <= self.importance <= 1.0 and 0.0 <= self.confidence <= 1.0):
            raise BadInput("importance and confidence must lie between 0 and 1")

    @property
    def sentence_id(self) -> str:
        """Of the sentence that it was made of; see `Evidence.sentence_id`."""
        return self.evidence[0].sentence_id if self.evidence else ""

    def status_at(self, at: float) -> MemoryStatus | None:
        """Its status at that time, by when things were said; None if it had not been said yet, or is none.

        A memory archived now counts as archived at all times.
        """
        if self.said_at > at or self.status is MemoryStatus.RAW:
            return None
        if self.status is MemoryStatus.ARCHIVED:
            return MemoryStatus.ARCHIVED
        ended = self.invalid_at if self.invalid_at is not None else self.superseded_at
        was_superseded = self.status == MemoryStatus.SUPERSEDED and (ended is None or ended <= at)
        return MemoryStatus.SUPERSEDED if was_superseded else MemoryStatus.ACTIVE


_SENTENCE_MARKS = re.compile(r"[.,;:!?\"'()\[\]{}<>\u2010-\u201f\u2026\u3001\u3002\u300a-\u300f*_~`-](?!\d)")


def statement_key(content: str) -> str:
    """A hash that is equal for the same statement, ignoring case, white space, character width and punctuation.

    Characters that may carry meaning count: currency and other symbols, and any mark before a digit ("1.5", "-3",
    "10:30").
    """
    folded = unicodedata.normalize("NFKC", content).casefold()
    words = _SENTENCE_MARKS.sub(" ", folded).split()
    return _digest(" ".join(words))


def _digest(text: str) -> str:
    """No two texts share it by chance."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Record:
    """A memory with its embedding, shape `(dimension,)`."""

    memory: Memory
    vector: Vector


class ChangeKind(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    SUPERSEDE = "supersede"


@dataclass(frozen=True, slots=True)
class Change:
    """One planned write. `memory` is the complete row after it, so that applying a change twice is harmless."""

    kind: ChangeKind
    memory: Memory


def together(
    rows: Sequence[Row], sentence_of: Callable[[Row], str | None], place_of: Callable[[Row], Any] = lambda row: 0
) -> list[Row]:
    """Rows of one sentence stand where the first of them stood, ordered by `place_of`; all others keep their order."""
    sentences: dict[object, list[Row]] = {}
    for number, row in enumerate(rows):
        sentences.setdefault(sentence_of(row) or number, []).append(row)
    return [row for facts in sentences.values() for row in sorted(facts, key=place_of)]


def facts_together(memories: Sequence[Memory]) -> list[Memory]:
    """Facts of one sentence in the order in which they stand in it."""
    return together(memories, lambda one: one.sentence_id, _place_in_sentence)


def _place_in_sentence(memory: Memory) -> int:
    return memory.evidence[0].quote.find(memory.evidence[0].clause) if memory.sentence_id else 0


class VersionChanged(BadInput):
    """The memory is no longer as the caller has read it."""

    code = "precondition_failed"

    def __init__(self) -> None:
        super().__init__(
            "this memory has changed since you read it, or the version is not of this memory: read it again"
        )


def version_of(memory: Memory) -> str:
    """Follows from all fields, also those that recall counts (`access_count`, `used_at`)."""
    return _digest(repr(memory))


def refuse_changed(memory: Memory, expected: Collection[str] | None) -> None:
    """Raises `VersionChanged` unless it has one of these versions. None: any."""
    if expected is not None and version_of(memory) not in expected:
        raise VersionChanged
