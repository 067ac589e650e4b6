"""The values that travel between the stages. Frozen, checked at birth, free of IO.

Times are Unix seconds (UTC, float). Token counts are estimates in WordPiece tokens of the embedding model.
An empty `project_id`, `session_id` or `agent_id` means "not given"; an empty `user_id` cannot be built.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from memory.errors import BadInput

ID_BYTES_MAX = 256  # of any user, project, session or agent id, in UTF-8; Milvus fields are declared with it
CONTENT_CHARACTERS_MAX = 8_000  # of one memory as stored; the gate of learning is stricter (2,000)

Vector: TypeAlias = npt.NDArray[np.float32]
"""One embedding, shape `(dimension,)`, unit length; or several, shape `(n, dimension)`."""


def is_valid_id(value: str) -> bool:
    """Whether `value` may name a user, project, session or agent.

    1 to 256 bytes of UTF-8, no control, format or surrogate character, no white space at an edge. Ids are compared
    exactly: nothing is trimmed, folded or normalised, so two ids that merely look alike stay two.
    """
    if not value or value[0].isspace() or value[-1].isspace():
        return False
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in value):
        return False
    return len(value.encode()) <= ID_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memories, and from where. `user_id` and `project_id` bound what may be seen; the rest only ranks."""

    user_id: str
    project_id: str = ""
    session_id: str = ""
    agent_id: str = ""

    def __post_init__(self) -> None:
        if not is_valid_id(self.user_id):
            raise BadInput("user_id must be 1-256 bytes of UTF-8 without control characters or white space at an edge")
        for name in ("project_id", "session_id", "agent_id"):
            value = getattr(self, name)
            if value and not is_valid_id(value):
                raise BadInput(f"{name} must be empty or follow the rules of user_id")


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """One message as text; parts that are not text (images, audio) are left out."""

    role: str  # one of Role, or whatever else the client sent ("developer")
    content: str
    is_tool_traffic: bool = False  # a tool call of the assistant, or a tool's result


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request says, in the order it says it; never empty."""

    messages: tuple[Message, ...]
    model: str = ""
    offers_tools: bool = False
    is_streamed: bool = False

    def last_user_text(self) -> str:
        """The text of the last user message, or "" where there is none."""
        return next((m.content for m in reversed(self.messages) if m.role == Role.USER), "")

    def new_user_messages(self) -> tuple[Message, ...]:
        """The user messages after the last assistant message: what this request adds to the record."""
        fresh: list[Message] = []
        for message in reversed(self.messages):
            if message.role == Role.ASSISTANT:
                break
            if message.role == Role.USER:
                fresh.append(message)
        return tuple(reversed(fresh))


class Placement(StrEnum):
    """Where the note goes: merged into the first system message, right before the last user message, or nowhere."""

    SYSTEM = "system"
    BEFORE_LAST_USER = "before_last_user"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """`memory_config` of one request. None means "as configured"."""

    enabled: bool = True
    auto_store: bool = True
    memory_types: tuple[str, ...] = ()
    retrieval_limit: int | None = None
    similarity_threshold: float | None = None
    token_budget: int | None = None
    placement: Placement | None = None


class MemoryStatus(StrEnum):
    ACTIVE = "active"
    SUPERSEDED = "superseded"


MEMORY_TYPES = ("semantic", "procedural", "episodic", "reflective")
CATEGORIES = (
    "preference",
    "fact",
    "skill",
    "habit",
    "event",
    "context",
    "constraint",
    "decision",
    "goal",
    "correction",
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a memory comes from: `quote` is an exact substring of a message of `role` in turn `turn_id`."""

    quote: str
    turn_id: str
    role: str = "user"


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing we know about a user.

    World time: `valid_from` to `invalid_at` (None: open). System time: `created_at`, `updated_at`, `superseded_at`.
    `said_at` is when the user said it, which decides what supersedes what. Scores lie in 0..1.
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
    source: str = "conversation"  # conversation, api, import
    status: MemoryStatus = MemoryStatus.ACTIVE
    importance: float = 0.5
    confidence: float = 1.0
    access_count: int = 0
    valid_from: float | None = None
    invalid_at: float | None = None
    superseded_at: float | None = None
    superseded_by: str = ""
    subject: str = "user"
    evidence: tuple[Evidence, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not is_valid_id(self.user_id):
            raise BadInput("a memory needs a valid user_id")
        if not self.content.strip() or len(self.content) > CONTENT_CHARACTERS_MAX:
            raise BadInput(f"content must have 1 to {CONTENT_CHARACTERS_MAX} characters, not only white space")
        if self.memory_type not in MEMORY_TYPES:
            raise BadInput(f"memory_type must be one of {', '.join(MEMORY_TYPES)}; got {self.memory_type!r:.40}")
        if not (0.0 <= self.importance <= 1.0 and 0.0 <= self.confidence <= 1.0):
            raise BadInput("importance and confidence must lie between 0 and 1")

    def status_at(self, at: float) -> MemoryStatus | None:
        """What this was at that time, judged by when things were said; None: it was not said yet."""
        if self.said_at > at:
            return None
        ended = self.invalid_at if self.invalid_at is not None else self.superseded_at
        was_superseded = self.status == MemoryStatus.SUPERSEDED and (ended is None or ended <= at)
        return MemoryStatus.SUPERSEDED if was_superseded else MemoryStatus.ACTIVE


_SENTENCE_MARKS = re.compile(r"[.,;:!?\"'()\[\]{}<>\u2010-\u201f\u2026\u3001\u3002\u300a-\u300f*_~`-](?!\d)")


def statement_key(content: str) -> str:
    """A hash that is equal for the same statement: case, white space, width and sentence marks are folded away.

    What may carry meaning stays: currency and other symbols, and any mark right before a digit ("1.5", "-3", "10:30").
    """
    folded = unicodedata.normalize("NFKC", content).casefold()
    words = _SENTENCE_MARKS.sub(" ", folded).split()
    return hashlib.sha256(" ".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:32]


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
    """One planned write. `memory` is the complete row as it will stand, so applying a change twice changes nothing."""

    kind: ChangeKind
    memory: Memory


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. `text` is what gets embedded and matched by words."""

    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory with what speaks for it: `parts` holds each score by name, `score` their sum. Higher is better."""

    memory: Memory
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)


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

    def memory_ids(self) -> tuple[str, ...]:
        """Every memory that the receipt names, once."""
        named = [note_id for note in self.notes for note_id in note.memory_ids]
        return tuple(dict.fromkeys([*named, *(candidate.memory_id for candidate in self.candidates)]))


class TurnStatus(StrEnum):
    OPENED = "opened"
    CLOSED = "closed"
    FAILED = "failed"  # the upstream answered with an error
    ABORTED = "aborted"  # the reply ended before its end: client gone, or upstream reset
    UNKNOWN = "unknown"  # we went down before the reply ended


@dataclass(frozen=True, slots=True)
class Turn:
    """The user messages after the last assistant message, plus the answer. `scope.session_id` is never empty here."""

    id: str
    scope: Scope
    at: float
    messages: tuple[Message, ...]
    status: TurnStatus = TurnStatus.OPENED
    answer: str = ""
    answered_at: float | None = None
    model: str = ""
    trace_id: str = ""
    receipt_id: str = ""

    def __post_init__(self) -> None:
        if not self.scope.session_id:
            raise BadInput("a turn needs a session_id")


def derived_session_id(scope: Scope, conversation: Conversation) -> str:
    """A stable session id for clients that send none: the hash of scope, system message and first user message."""
    system = next((m.content for m in conversation.messages if m.role in (Role.SYSTEM, "developer")), "")
    first = next((m.content for m in conversation.messages if m.role == Role.USER), "")
    seed = "\x1f".join((scope.user_id, scope.project_id, scope.agent_id, system, first))
    return "s-" + hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:32]
