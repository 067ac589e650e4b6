"""Arguments and results of the library, with the validation that all callers share.

Pure. Invalid values are refused, never corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from memory.chat.envelopes import KNOWN, Envelopes
from memory.errors import BadInput
from memory.model import CATEGORIES, MEMORY_TYPES, Memory, MemoryStatus, Receipt, Scope, Trust
from memory.model.claim_filters import ANY_CLAIM, ClaimFilter
from memory.model.memories import API_SOURCE, MemoryVisibility
from memory.model.projects import ONE_TENANT, Tenancy
from memory.model.raw_words import ANSWERED
from memory.model.withdrawn import kept_keys, restored
from memory.model.wordings import WORDINGS, Corrector, reworded
from memory.model.zones import UTC_ZONES, Zones
from memory.ports import Clock, MemoryFilter, Tokens
from memory.runtime.tracing import NO_TRACER, Tracer

METADATA_BYTES_MAX = 16_384  # of JSON; a Milvus JSON field holds 65,536
AHEAD_SECONDS_MAX = 86_400.0  # clocks and time zones differ; a later time is an error
METADATA_DEPTH_MAX = 16  # far below the recursion limits here and in a store's encoder

# Of ASCII, without white space: texts have none, and programs in C end a text at the first of them.
_CONTROL = frozenset(map(chr, (*range(0x09), *range(0x0E, 0x1C), 0x7F)))


@dataclass(frozen=True, slots=True)
class FlushTiming:
    """How `flush` waits, in seconds."""

    reply_delay: float = 0.3  # the end of a reply may still be on its way to the log when the client calls
    poll: float = 0.05
    longest: float = 120.0
    retry: float = 3.0  # also waited for: a store that has just started costs a retry of half a second


@dataclass(frozen=True, slots=True)
class Intake:
    """How new memories and turns are prepared: `clock` gives their times, `new_id` generates unique ids, `redact`
    removes secrets from a message before it is stored, and `tokens` counts the lines of profiles.
    `session_end_seconds`: an idle session has ended after it. `tenancy`: what user ids begin with. `zones`: of users.
    `envelopes`: of clients, around what a user typed.
    """

    clock: Clock
    new_id: Callable[[], str]
    redact: Callable[[str], str]
    tokens: Tokens
    session_end_seconds: float = 1_800.0
    tenancy: Tenancy = ONE_TENANT
    tracer: Tracer = NO_TRACER
    flush_timing: FlushTiming = FlushTiming()
    zones: Zones = UTC_ZONES
    envelopes: Envelopes = KNOWN


@dataclass(frozen=True, slots=True)
class NewMemory:
    """What to store. `created_at` (None: now) is also the time it was said. Empty ids default to the caller's scope.
    `keeps_secrets`: secrets in `content` are stored as given.
    """

    content: str
    memory_type: str = "semantic"
    category: str = "fact"
    project_id: str = ""
    session_id: str = ""
    agent_id: str = ""
    created_at: float | None = None
    importance: float = 0.5
    metadata: dict[str, Any] | None = None
    visibility: MemoryVisibility = MemoryVisibility.OWNER_ONLY
    keeps_secrets: bool = False


@dataclass(frozen=True, slots=True)
class ListedContent:
    """Which memories a listing is about, by what they say. Empty means "any"."""

    memory_types: tuple[str, ...] = ()
    claim: ClaimFilter = ANY_CLAIM

    def filter_for(self, scope: Scope, status: MemoryStatus | None) -> MemoryFilter:
        """What the assistant said is no memory, and is not listed. Raises `BadInput` for unknown types."""
        refuse_unknown_types(self.memory_types)
        where = MemoryFilter(scope.user_id, scope.project_id, scope.agent_id, other_source=ANSWERED)
        return replace(where, memory_types=self.memory_types, status=status)


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """Changes to a memory; None leaves a field. `metadata` replaces all keys except our own.

    `status` can only become active, which restores an archived memory. `visibility` is changed by a call of its own,
    which may name the project.
    """

    content: str | None = None
    importance: float | None = None
    category: str | None = None
    memory_type: str | None = None
    metadata: dict[str, Any] | None = None
    status: str | None = None
    visibility: MemoryVisibility | None = None
    project_id: str | None = None

    def applied_to(self, memory: Memory, *, now: float, by: Corrector = Corrector.USER) -> Memory:
        """The changed memory, with what it said before among its earlier wordings. Raises `BadInput`."""
        given = {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}
        if not given:
            raise BadInput(f"nothing to change: give one of {', '.join(self.__slots__)}")
        if self.visibility is not None or self.project_id is not None:
            raise BadInput("visibility, and with it project_id, are changed in a call of their own")
        if self.category is not None:
            known_category(self.category)
        if self.content is not None:
            plain_text(self.content, "content")
        if self.metadata is not None:
            plain_metadata(self.metadata)
            given["metadata"] = {**self.metadata, **{key: memory.metadata[key] for key in kept_keys(memory)}}
        if given.pop("status", MemoryStatus.ACTIVE.value) != MemoryStatus.ACTIVE.value:
            raise BadInput("status can only be set to active, which brings back what was put away")
        changed = reworded(memory, replace(memory, **given, updated_at=now), by=by)
        return restored(changed, now=now) if self.status is not None else changed


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts for one user. `by_type`: active memories; turns as in `Backlog`. `opted_out_since`: None if not."""

    active: int
    superseded: int
    archived: int
    by_type: dict[str, int]
    pending_turns: int
    failed_turns: int
    opted_out_since: float | None = None


@dataclass(frozen=True, slots=True)
class ExplainedReceipt:
    """A receipt with the current contents of its memories by id, without forgotten or unavailable ones."""

    receipt: Receipt
    contents: Mapping[str, str]


def memory_to_store(
    scope: Scope, item: NewMemory, index: int, *, now: float, memory_id: str, zones: Zones = UTC_ZONES
) -> Memory:
    """The memory that an application gives. `index`: of the item in its call, for the message of `BadInput`."""
    try:
        return given_memory(scope, item, now=now, memory_id=memory_id, zones=zones)
    except BadInput as error:
        raise BadInput(f"memories[{index}]: {error}", code=error.code) from error


def given_memory(scope: Scope, item: NewMemory, *, now: float, memory_id: str, zones: Zones = UTC_ZONES) -> Memory:
    """The same for a single item."""
    at = time_said(item.created_at, now, "created_at")
    where = Scope(
        scope.user_id,
        item.project_id or scope.project_id,
        item.session_id or scope.session_id,
        item.agent_id or scope.agent_id,
    )
    return Memory(
        id=memory_id,
        user_id=where.user_id,
        project_id=where.project_id,
        session_id=where.session_id,
        agent_id=where.agent_id,
        content=plain_text(item.content, "content"),
        memory_type=item.memory_type,
        category=known_category(item.category),
        importance=item.importance,
        source=API_SOURCE,
        trust=Trust.BOOTSTRAPPED,
        metadata=plain_metadata(item.metadata or {}),
        created_at=at,
        updated_at=at,
        said_at=at,
        utc_offset=zones.offset(at),
    )


def plain_text(text: str, name: str) -> str:
    """Refuses a text with control characters: it was read in another encoding, or is none."""
    found = _CONTROL.intersection(text)
    if found:
        raise BadInput(f"{name} has the control character U+{ord(min(found)):04X}: is it text in UTF-8?")
    return text


def plain_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """As `checked_metadata`, for what is new here: refuses control characters in names and texts, too, and our key."""
    if WORDINGS in metadata:
        raise BadInput(f"metadata may not have the key {WORDINGS}: memproxy keeps what a memory said before under it")
    for value, _ in _nested(checked_metadata(metadata)):
        if isinstance(value, str):
            plain_text(value, "metadata")
    return metadata


def checked_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuses metadata that a store could not keep exactly or quickly: it must be a small, flat JSON object."""
    for value, depth in _nested(metadata):
        if depth > METADATA_DEPTH_MAX:
            raise BadInput(f"metadata may nest {METADATA_DEPTH_MAX} deep; store a flatter object")
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise BadInput("metadata holds a whole number beyond 64 bits; give it as text")
    if len(msgspec.json.encode(metadata)) > METADATA_BYTES_MAX:
        raise BadInput(f"metadata may have {METADATA_BYTES_MAX} bytes as JSON; store less")
    return metadata


def _nested(metadata: Mapping[str, Any]) -> Iterator[tuple[Any, int]]:
    """Each value and each name in it, with its depth. However deep, for the caller bounds that."""
    waiting: list[tuple[Any, int]] = [(metadata, 0)]
    while waiting:
        value, depth = waiting.pop()
        yield value, depth
        below = [*value, *value.values()] if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        waiting += [(one, depth + 1) for one in below]


def known_category(category: str) -> str:
    if category not in CATEGORIES:
        raise BadInput(f"category must be one of {', '.join(CATEGORIES)}; got {category!r:.40}")
    return category


def refuse_unknown_types(memory_types: Sequence[str]) -> None:
    for memory_type in memory_types:
        if memory_type not in MEMORY_TYPES:
            raise BadInput(f"memory_type must be one of {', '.join(MEMORY_TYPES)}; got {memory_type!r:.40}")


def time_said(given: float | None, now: float, name: str) -> float:
    """`given`, or `now`. Refuses future times, such as milliseconds in place of seconds."""
    if given is not None and given > now + AHEAD_SECONDS_MAX:
        raise BadInput(f"{name} is in the future: give when it was said, in ISO 8601 or Unix seconds (UTC)")
    return now if given is None else given
