"""The JSON of memories: what calls take and give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memory.api.times import TimeText, time_of
from memory.api.views import view_of
from memory.model import CATEGORIES, MEMORY_TYPES, Candidate, Memory, MemoryStatus, Trust
from memory.model.claim_filters import FILTER_CHARACTERS_MAX, ClaimFilter
from memory.model.memories import MemoryVisibility, facts_together
from memory.model.wordings import Corrector, earlier_in, plain_metadata_of
from memory.service.library import MEMORIES_PER_ADD_MAX
from memory.service.requests import MemoryEdit, NewMemory

SEARCH_LIMIT_MAX = 200
SEARCH_TOKENS_MAX = 20_000  # ten times the limit of a note, for callers that want more than a chat gets

GivenTime: TypeAlias = Annotated[
    str | float | None, Meta(description="ISO 8601 (without an offset: UTC) or Unix seconds; default: now.")
]
GivenText: TypeAlias = str | None
TypeName: TypeAlias = Annotated[
    str, Meta(description="The kind of memory.", extra_json_schema={"extra": {"enum": list(MEMORY_TYPES)}})
]
VisibilityName: TypeAlias = Annotated[
    MemoryVisibility,
    Meta(description="Who may read it: its author, the members of its shared project, or also whoever names its id."),
]
CategoryName: TypeAlias = Annotated[str, Meta(extra_json_schema={"extra": {"enum": list(CATEGORIES)}})]


class MemoryBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A memory to store, without secrets. `created_at` is also when it was said."""

    content: Annotated[str, Meta(examples=["I like green tea"])]
    memory_type: TypeName = "semantic"
    category: GivenText = None
    project_id: GivenText = None
    session_id: GivenText = None
    agent_id: GivenText = None
    created_at: GivenTime = None
    importance: float | None = None
    metadata: dict[str, Any] | None = None
    visibility: VisibilityName = MemoryVisibility.OWNER_ONLY


Redacts: TypeAlias = Annotated[
    bool,
    Meta(
        description="False: secrets in the content are stored as given. Only in development, and for service tokens "
        "that have the scope `operate`."
    ),
]


class AddBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    memories: Annotated[list[MemoryBody], Meta(description=f"1 to {MEMORIES_PER_ADD_MAX}.")]
    redact: Redacts = True


WHOLE_FIELD = "The whole field, ignoring case, white space, character width and punctuation. Empty: any."
ClaimField: TypeAlias = Annotated[str, Meta(max_length=FILTER_CHARACTERS_MAX, description=WHOLE_FIELD)]


class SearchBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`history`: the messages before the question; `token_budget` is filled if it is given. `subject`, `name`,
    `attribute` and `value`: only memories whose claim has them.
    """

    query: Annotated[str, Meta(examples=["What do I like to drink?"])]
    limit: Annotated[int, Meta(ge=1, le=SEARCH_LIMIT_MAX)] | None = None
    token_budget: Annotated[int, Meta(ge=1, le=SEARCH_TOKENS_MAX)] | None = None
    memory_types: list[TypeName] | None = None
    project_id: GivenText = None
    session_id: GivenText = None
    agent_id: GivenText = None
    history: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))
    as_of: GivenTime = None
    subject: ClaimField | None = None
    name: ClaimField | None = None
    attribute: ClaimField | None = None
    value: ClaimField | None = None

    @property
    def claim(self) -> ClaimFilter:
        return ClaimFilter(self.subject or "", self.name or "", self.attribute or "", self.value or "")


class EditBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """At least one field. `status` can only be `active`, which restores an archived memory. `visibility` comes alone,
    or with the `project_id` of the shared project; sharing a memory, or taking it back, gives it a new id.
    """

    content: str | UnsetType = UNSET
    importance: float | UnsetType = UNSET
    category: CategoryName | UnsetType = UNSET
    memory_type: TypeName | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    status: str | UnsetType = UNSET
    visibility: VisibilityName | UnsetType = UNSET
    project_id: str | UnsetType = UNSET


class EvidenceView(msgspec.Struct, frozen=True):
    """The words that a memory stands on, and the turn in which they were said. `clause`: those that say this
    fact; "" in memories of older releases that are not read again yet.
    """

    quote: str
    turn_id: str
    role: str
    clause: str = ""


class MemoryView(msgspec.Struct, frozen=True):
    """A memory. `type`: as `memory_type`, for clients of vLLM Semantic Router. `subject`, `attribute` and `values` are
    the claim that it was made of, if a reader made it. `user_id`: its author, who may be another member where
    `visibility` says that it is shared. `sentence_id`: the same for the facts of one sentence, which stand next to one
    another in a page; null where a sentence says nothing else.
    """

    id: str
    content: str
    memory_type: str
    type: str
    category: str
    status: MemoryStatus
    created_at: TimeText
    updated_at: TimeText
    said_at: TimeText
    valid_from: TimeText | None
    invalid_at: TimeText | None
    superseded_at: TimeText | None
    superseded_by: str | None
    expires_at: TimeText | None
    used_at: TimeText | None
    user_id: str
    project_id: str | None
    session_id: str | None
    agent_id: str | None
    source: str
    trust: Trust
    made_by: str
    subject: str
    name: str | None
    attribute: str
    values: list[str]
    is_affirmed: bool
    importance: float
    confidence: float
    access_count: int
    evidence: list[EvidenceView]
    sentence_id: str | None
    metadata: dict[str, Any]
    visibility: MemoryVisibility


class FoundMemory(MemoryView, frozen=True):
    """A search result: the memory, its score, and the parts of that score by name."""

    score: float
    score_parts: dict[str, float]


class AddedMemories(msgspec.Struct, frozen=True):
    """One id per memory that was given, in order."""

    ids: list[str]


class FoundMemories(msgspec.Struct, frozen=True):
    """Best first."""

    memories: list[FoundMemory]
    took_ms: float


class MemoryPage(msgspec.Struct, frozen=True):
    """`next_cursor`: to be passed as `cursor`; null after the last page."""

    memories: list[MemoryView]
    next_cursor: str | None


class ListedMemories(MemoryPage, frozen=True):
    """`total`: of all pages; null with `as_of` or a claim. `limit`: the most that a page has."""

    total: int | None
    limit: int


class EarlierWordingView(msgspec.Struct, frozen=True):
    """What a memory said from `since` to `until`, and who corrected it: the user, another member of its shared project,
    or learning, from something that was said later. `memory_id`: another one where that stored a memory of its own.
    """

    memory_id: str
    content: str
    since: TimeText
    until: TimeText
    corrected_by: Corrector


class MemoryHistory(msgspec.Struct, frozen=True):
    """The memory and what it replaced, latest first; `earlier`: all that they said before, latest first."""

    memories: list[MemoryView]
    earlier: list[EarlierWordingView]


class DeletedScope(msgspec.Struct, frozen=True):
    """Memories that were deleted, and turns that were withdrawn before they were learnt."""

    deleted: int
    withdrawn_turns: int


class DeletedMemory(msgspec.Struct, frozen=True):
    deleted: int


def new_memory(body: MemoryBody, *, redact: bool) -> NewMemory:
    fields = {name: getattr(body, name) for name in ("category", "project_id", "session_id", "agent_id", "importance")}
    return NewMemory(
        content=body.content,
        memory_type=body.memory_type,
        created_at=time_of(body.created_at, "created_at"),
        metadata=body.metadata,
        visibility=body.visibility,
        keeps_secrets=not redact,
        **{name: value for name, value in fields.items() if value is not None},
    )


def edit_of(body: EditBody) -> MemoryEdit:
    return MemoryEdit(**{name: value for name in body.__struct_fields__ if (value := getattr(body, name)) is not UNSET})


def memory_view(memory: Memory) -> MemoryView:
    return view_of(MemoryView, memory, **_more(memory))


def listed_memories(memories: Sequence[Memory]) -> list[MemoryView]:
    """A page of them, with facts of one sentence next to one another."""
    return list(map(memory_view, facts_together(memories)))


def history_view(memories: Sequence[Memory]) -> MemoryHistory:
    """The newest first."""
    newest_id = memories[0].id if memories else ""
    earlier = [view_of(EarlierWordingView, one) for one in earlier_in(memories, newest_id=newest_id)]
    return MemoryHistory(list(map(memory_view, memories)), earlier)


def found_memory(candidate: Candidate) -> FoundMemory:
    more = _more(candidate.memory)
    return view_of(FoundMemory, candidate.memory, **more, score=candidate.score, score_parts=dict(candidate.parts))


def _more(memory: Memory) -> dict[str, Any]:
    return {
        "type": memory.memory_type,
        "evidence": [view_of(EvidenceView, one) for one in memory.evidence],
        "metadata": dict(plain_metadata_of(memory)),
    }
