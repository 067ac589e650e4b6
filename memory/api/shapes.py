"""The JSON of the REST API: request bodies, query parameters and results.

Every body is validated against its type first; unknown fields are refused, never ignored. Times are accepted as ISO
8601 (without an offset: UTC) or Unix seconds, and returned as ISO 8601 in UTC with whole seconds.
"""

from __future__ import annotations

import difflib
import math
import re
import typing
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memory.chat.completions import NotAChat, read_chat_request
from memory.errors import BadInput
from memory.model import Candidate, Evidence, Memory, Message, ProfileProse
from memory.service.profiles import ShownProfile
from memory.service.requests import ExplainedReceipt, MemoryEdit, NewMemory

TIME_MAX = 253_402_300_799.0  # the last second of the year 9999, the limit of ISO 8601 with four digits
SEARCH_LIMIT_MAX = 200
SEARCH_TOKENS_MAX = 20_000  # ten times the limit of a note, for callers that want more than a chat gets
HISTORY_MESSAGES_MAX = 1_000

_UNKNOWN_FIELD = re.compile(r"unknown field `(.*?)`(?: - at `\$.*`)?$", re.DOTALL)
_Body = TypeVar("_Body", bound=msgspec.Struct)
_Time = str | float | None
_Text = str | None


class MemoryBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    content: str
    memory_type: str = "semantic"
    category: _Text = None
    project_id: _Text = None
    session_id: _Text = None
    agent_id: _Text = None
    created_at: _Time = None
    importance: float | None = None
    metadata: dict[str, Any] | None = None


class AddBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    memories: list[MemoryBody]


class SearchBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    query: str
    limit: Annotated[int, Meta(ge=1, le=SEARCH_LIMIT_MAX)] | None = None
    token_budget: Annotated[int, Meta(ge=1, le=SEARCH_TOKENS_MAX)] | None = None
    memory_types: list[str] | None = None
    project_id: _Text = None
    session_id: _Text = None
    agent_id: _Text = None
    history: msgspec.Raw = msgspec.Raw(b"null")
    as_of: _Time = None


class EditBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    content: str | UnsetType = UNSET
    importance: float | UnsetType = UNSET
    category: str | UnsetType = UNSET
    memory_type: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    status: str | UnsetType = UNSET


class TurnsBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    session_id: str
    messages: msgspec.Raw
    at: _Time = None
    project_id: _Text = None
    agent_id: _Text = None
    trace_id: _Text = None


class FlushBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    session_id: _Text = None


class ProfileBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    pinned: list[str] | None = None
    enabled: bool | None = None


def decoded(body: bytes, shape: type[_Body]) -> _Body:
    """The parsed body. Raises `BadInput` that says where it differs from the type."""
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        unknown = _UNKNOWN_FIELD.search(str(error))
        raise BadInput(_unknown(unknown[1], _fields_of(shape)) if unknown else str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the body is not JSON that we can read: {error}") from None


def refuse_unknown_parameters(given: Mapping[str, str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise BadInput(_unknown(name, known))


def new_memory(body: MemoryBody) -> NewMemory:
    fields = {name: getattr(body, name) for name in ("category", "project_id", "session_id", "agent_id", "importance")}
    return NewMemory(
        content=body.content,
        memory_type=body.memory_type,
        created_at=time_of(body.created_at, "created_at"),
        metadata=body.metadata,
        **{name: value for name, value in fields.items() if value is not None},
    )


def edit_of(body: EditBody) -> MemoryEdit:
    return MemoryEdit(**{name: value for name in body.__struct_fields__ if (value := getattr(body, name)) is not UNSET})


def messages_of(raw: msgspec.Raw, name: str) -> tuple[Message, ...]:
    """Messages in the format of a chat request; null and [] give an empty history."""
    if bytes(raw).strip() in (b"null", b"[]"):
        return ()
    try:
        conversation = read_chat_request(b'{"messages":' + bytes(raw) + b"}").conversation
    except NotAChat as error:
        raise BadInput(f"{name} cannot be read: {error.reason}") from None
    if conversation is None:
        raise BadInput(f'{name} must be a list of messages such as {{"role": "user", "content": "text"}}')
    if len(conversation.messages) > HISTORY_MESSAGES_MAX:
        raise BadInput(f"{name} may hold {HISTORY_MESSAGES_MAX} messages, got {len(conversation.messages)}")
    return conversation.messages


def time_of(value: _Time, name: str) -> float | None:
    """Unix seconds of an ISO 8601 text or a number, or a number as text as in query parameters."""
    if value is None:
        return None
    refused = BadInput(f"{name} must be ISO 8601 such as 2025-03-04T09:00:00Z, or Unix seconds; got {value!r:.40}")
    try:
        at = float(value)
    except ValueError:
        at = _iso_time(str(value), refused)
    if not (math.isfinite(at) and 0 <= at <= TIME_MAX):
        raise refused
    return at


def _iso_time(text: str, refused: BadInput) -> float:
    try:
        read_time = datetime.fromisoformat(text)
        return (read_time if read_time.tzinfo else read_time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise refused from None


def time_text(at: float | None) -> str | None:
    """ISO 8601 in UTC, truncated to whole seconds: `2025-03-04T09:00:00Z`."""
    if at is None:
        return None
    return datetime.fromtimestamp(math.floor(min(max(at, 0.0), TIME_MAX)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def memory_shape(memory: Memory) -> dict[str, Any]:
    """A memory as the API returns it."""
    return {
        "id": memory.id,
        "content": memory.content,
        "memory_type": memory.memory_type,
        "category": memory.category,
        "status": memory.status.value,
        "created_at": time_text(memory.created_at),
        "updated_at": time_text(memory.updated_at),
        "said_at": time_text(memory.said_at),
        "valid_from": time_text(memory.valid_from),
        "invalid_at": time_text(memory.invalid_at),
        "superseded_at": time_text(memory.superseded_at),
        "superseded_by": memory.superseded_by or None,
        "expires_at": time_text(memory.expires_at),
        "used_at": time_text(memory.used_at),
        "user_id": memory.user_id,
        "project_id": memory.project_id or None,
        "session_id": memory.session_id or None,
        "agent_id": memory.agent_id or None,
        "source": memory.source,
        "trust": memory.trust.value,
        "made_by": memory.made_by,
        "subject": memory.subject,
        "name": memory.name or None,
        "attribute": memory.attribute,
        "values": list(memory.values),
        "is_affirmed": memory.is_affirmed,
        "importance": memory.importance,
        "confidence": memory.confidence,
        "access_count": memory.access_count,
        "evidence": [evidence_shape(one) for one in memory.evidence],
        "metadata": dict(memory.metadata),
    }


def candidate_shape(candidate: Candidate) -> dict[str, Any]:
    """A search result: the memory, its score, and the parts of that score by name."""
    return {**memory_shape(candidate.memory), "score": candidate.score, "score_parts": dict(candidate.parts)}


def profile_shape(shown: ShownProfile) -> dict[str, Any]:
    """A profile as the API returns it; `text` is what a prompt gets of it."""
    profile = shown.profile
    return {
        "user_id": profile.user_id,
        "project_id": profile.project_id,
        "enabled": profile.is_enabled,
        "version": profile.version,
        "updated_at": time_text(profile.updated_at),
        "pinned": [line.text.removeprefix("- ") for line in profile.pinned],
        "lines": [
            {
                "text": line.text.removeprefix("- "),
                "memory_id": line.memory_id,
                "evidence": [evidence_shape(one) for one in shown.evidence.get(line.memory_id, ())],
            }
            for line in profile.lines
        ],
        "prose": prose_shape(profile.prose) if profile.prose is not None else None,
        "text": shown.text,
        "tokens": shown.tokens,
    }


def prose_shape(prose: ProfileProse) -> dict[str, Any]:
    """The evidence of a sentence is that of the lines of its memories."""
    sentences = [{"text": one.text, "memory_ids": list(one.memory_ids)} for one in prose.sentences]
    return {"sentences": sentences, "made_by": prose.made_by}


def evidence_shape(evidence: Evidence) -> dict[str, str]:
    return {"quote": evidence.quote, "turn_id": evidence.turn_id, "role": evidence.role}


def receipt_shape(explained: ExplainedReceipt) -> dict[str, Any]:
    """A receipt as the API returns it; `content` is null for a memory that is forgotten, or unavailable now."""
    receipt, contents = explained.receipt, explained.contents
    return {
        "id": receipt.id,
        "created_at": time_text(receipt.at),
        "status": receipt.status.value,
        "reason": receipt.reason,
        "signals": dict(receipt.signals),
        "query": receipt.query,
        "candidates": [
            {
                "id": one.memory_id,
                "content": contents.get(one.memory_id),
                "score": one.score,
                "score_parts": dict(one.parts),
                "verdict": one.verdict.value,
            }
            for one in receipt.candidates
        ],
        "candidates_left_out": receipt.left_out,
        "notes": [
            {
                "before_message": note.before,
                "is_new": note.is_new,
                "tokens": note.tokens,
                "memories": [{"id": one, "content": contents.get(one)} for one in note.memory_ids],
            }
            for note in receipt.notes
        ],
        "injected": [memory_id for note in receipt.notes for memory_id in note.memory_ids],
        "tokens": sum(note.tokens for note in receipt.notes),
        "timings_ms": dict(receipt.timings_ms),
        "outcome": dict(receipt.outcome),
    }


def _unknown(name: str, known: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    advice = f"did you mean {nearest[0]}?" if nearest else f"known: {', '.join(known)}"
    return f"unknown field {name[:60]}: {advice}"


def _fields_of(shape: type[msgspec.Struct]) -> list[str]:
    """Field names at any level of the type: the error message of an unknown field does not name the level."""
    listed = [argument for hint in typing.get_type_hints(shape).values() for argument in typing.get_args(hint)]
    below = [one for one in listed if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    return [field.encode_name for one in (shape, *below) for field in msgspec.structs.fields(one)]
