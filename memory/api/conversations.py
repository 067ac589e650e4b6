"""The endpoints of the conversation record: sessions, conversations and their messages.

Each has a path below `/v1/memory`, which the proxy's port serves too, and most a short one on the API port alone: the
short names may be the upstream's own (OpenAI and vLLM have `/v1/conversations`), so the proxy never takes them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from memory.api import shapes
from memory.api.calls import Call, Endpoint, json_answer
from memory.chat.json_spans import NotJson, well_formed
from memory.errors import BadInput
from memory.model import (
    MessageDirection,
    MessageFilter,
    Party,
    PartyType,
    RecordedMessage,
    Scope,
    Session,
    SessionSummary,
    Visibility,
)
from memory.service.conversations import (
    KEEP_LAST_MAX,
    MESSAGES_PER_PAGE_MAX,
    SESSIONS_PER_PAGE_MAX,
    Conversations,
    GivenNote,
    NewMessage,
)
from memory.service.library import Library

PAGE_DEFAULT = 100
KEEP_LAST_DEFAULT = 20
COMPRESSED_CHARACTERS_DEFAULT = 500
FILTERS = ("agent_id", "view", "trace_id", "query")
PAGING = ("limit", "cursor")
VIEWS = {"own": False, "visible": True}
ONE_SESSION = "/sessions/{id:path}"
ONE_CONVERSATION = "/conversations/{id:path}"
EXPORT_LINES = 200  # written at a time

_Text = str | None
_KeepLast = Annotated[int, Meta(ge=0, le=KEEP_LAST_MAX)]


class MessageBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    source_type: PartyType
    target_type: PartyType
    content: str
    source: _Text = None
    target: _Text = None
    id: _Text = None
    at: str | float | None = None
    direction: MessageDirection | None = msgspec.field(name="type", default=None)
    trace_id: _Text = None
    visibility: Visibility = Visibility.USER


class MessagesBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    messages: list[MessageBody]
    project_id: _Text = None


class TrimBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    keep_last: _KeepLast


class CompressBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    keep_last: _KeepLast = KEEP_LAST_DEFAULT
    characters_max: int = COMPRESSED_CHARACTERS_DEFAULT


class RouteMaker(Protocol):
    """Makes a route whose caller is identified and whose query has only these parameters."""

    def __call__(self, path: str, method: str, endpoint: Endpoint, *parameters: str) -> Route: ...


def conversation_routes(route: RouteMaker) -> list[Route]:
    """In an order in which no path hides another; to stand before `/v1/memory/{id}`."""
    routes = [
        route("/v1/memory/messages", "GET", show_messages, "conversation_id", *FILTERS, *PAGING),
        route("/v1/memory/messages/export", "GET", export, "conversation_id", *FILTERS),
        route("/v1/memory/messages/{id:path}", "DELETE", delete_message, "keep_memories"),
    ]
    for base in ("/v1/memory", "/v1"):
        routes += [
            route(f"{base}/sessions", "GET", list_sessions, *PAGING),
            route(f"{base}{ONE_SESSION}/end", "POST", end_session),
            route(base + ONE_SESSION, "GET", show_session, *PAGING),
            route(base + ONE_SESSION, "DELETE", delete_session, "keep_memories"),
            route(f"{base}{ONE_CONVERSATION}/messages", "GET", show_conversation, *FILTERS, *PAGING),
            route(f"{base}{ONE_CONVERSATION}/messages", "POST", add_messages),
            route(f"{base}{ONE_CONVERSATION}/trim", "POST", trim),
            route(f"{base}{ONE_CONVERSATION}/compress", "POST", compress),
        ]
    return routes


async def list_sessions(library: Library, call: Call) -> Response:
    limit = _limit(call.parameters, SESSIONS_PER_PAGE_MAX)
    page = await library.conversations.sessions(call.user_id, limit=limit, cursor=call.parameters.get("cursor", ""))
    sessions = [await session_shape(call.user_id, session, library.conversations) for session in page.sessions]
    return json_answer({"sessions": sessions, "next_cursor": page.next_cursor or None})


async def show_session(library: Library, call: Call) -> Response:
    """The notes come with the first page of messages."""
    conversations, cursor = library.conversations, call.parameters.get("cursor", "")
    limit = _limit(call.parameters, MESSAGES_PER_PAGE_MAX)
    session = await conversations.session(call.user_id, call.path_id)
    page = await conversations.page(MessageFilter(call.user_id, session.id), limit=limit, cursor=cursor)
    notes = [] if cursor else await conversations.notes_given(call.user_id, session.id)
    shown: dict[str, Any] = {
        "messages": list(map(message_shape, page.messages)),
        "next_cursor": page.next_cursor or None,
        "notes": list(map(note_shape, notes)),
    }
    summary = await conversations.summary(call.user_id, session.id)
    shown["summary"] = None if summary is None else summary_shape(summary)
    return json_answer(await session_shape(call.user_id, session, conversations) | shown)


async def end_session(library: Library, call: Call) -> Response:
    """Its summary is written soon after its turns are learnt."""
    await library.end_session(call.user_id, call.path_id)
    return json_answer({"ended": True}, 202)


async def delete_session(library: Library, call: Call) -> Response:
    deleted = await library.conversations.delete_session(
        call.user_id, call.path_id, keep_memories=_keeps_memories(call.parameters)
    )
    return json_answer(
        {
            "deleted": {"turns": deleted.turns, "messages": deleted.messages, "memories": deleted.memories},
            "kept_memories": deleted.kept_memories,
        }
    )


async def show_messages(library: Library, call: Call) -> Response:
    where = _filter(call, call.parameters.get("conversation_id", ""))
    limit = _limit(call.parameters, MESSAGES_PER_PAGE_MAX)
    page = await library.conversations.page(where, limit=limit, cursor=call.parameters.get("cursor", ""))
    return json_answer({"messages": list(map(message_shape, page.messages)), "next_cursor": page.next_cursor or None})


async def show_conversation(library: Library, call: Call) -> Response:
    where, cursor = _filter(call, call.path_id), call.parameters.get("cursor", "")
    limit = _limit(call.parameters, MESSAGES_PER_PAGE_MAX)
    page = await library.conversations.conversation(where, limit=limit, cursor=cursor)
    return json_answer({"messages": list(map(message_shape, page.messages)), "next_cursor": page.next_cursor or None})


async def export(library: Library, call: Call) -> Response:
    """All messages as JSON lines, in the order of the record."""
    where = _filter(call, call.parameters.get("conversation_id", ""))

    async def lines() -> AsyncIterator[bytes]:
        waiting: list[bytes] = []
        async for message in library.conversations.export(where):
            waiting.append(msgspec.json.encode(message_shape(message)) + b"\n")
            if len(waiting) == EXPORT_LINES:
                yield b"".join(waiting)
                waiting.clear()
        yield b"".join(waiting)

    return StreamingResponse(lines(), media_type="application/x-ndjson")


async def add_messages(library: Library, call: Call) -> Response:
    try:
        text = well_formed(call.body)  # lone surrogates become replacement characters, as in chats
    except NotJson as error:
        raise BadInput(f"the body is not JSON that we can read: {error.reason}") from None
    body = shapes.decoded(text, MessagesBody)
    scope = Scope(call.user_id, body.project_id or "", call.path_id)
    ids = await library.conversations.add(scope, list(map(_new_message, body.messages)))
    return json_answer({"ids": ids}, 201)


async def delete_message(library: Library, call: Call) -> Response:
    memories = await library.conversations.delete_message(
        call.user_id, call.path_id, keep_memories=_keeps_memories(call.parameters)
    )
    return json_answer({"deleted": {"messages": 1, "memories": memories}})


async def trim(library: Library, call: Call) -> Response:
    body = shapes.decoded(call.body, TrimBody)
    removed = await library.conversations.trim(call.user_id, call.path_id, keep_last=body.keep_last)
    return json_answer({"deleted": removed})


async def compress(library: Library, call: Call) -> Response:
    body = shapes.decoded(call.body, CompressBody) if call.body.strip() else CompressBody()
    changed = await library.conversations.compress(
        call.user_id, call.path_id, keep_last=body.keep_last, characters_max=body.characters_max
    )
    return json_answer({"compressed": changed})


# Shapes


def message_shape(message: RecordedMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "conversation_id": message.conversation_id,
        "trace_id": _encodable(message.trace_id) or None,
        "source": _encodable(message.source.name) or None,
        "source_type": message.source.type.value,
        "target": _encodable(message.target.name) or None,
        "target_type": message.target.type.value,
        "type": message.direction.value,
        "content": _encodable(message.content),
        "at": shapes.time_text(message.at),
        "unix_time": message.at,
        "project_id": message.project_id or None,
        "turn_id": message.turn_id or None,
        "visibility": message.visibility.value,
    }


async def session_shape(user_id: str, session: Session, conversations: Conversations) -> dict[str, Any]:
    return {
        "id": session.id,
        "title": _encodable(session.title),
        "status": "open" if await conversations.is_open(user_id, session) else "ended",
        "first_at": shapes.time_text(session.first_at),
        "last_at": shapes.time_text(session.last_at),
        "turns": session.turns,
        "messages_added": session.messages_added,
        "agent_ids": list(session.agent_ids),
        "pending_turns": session.unlearnt_turns,
    }


def summary_shape(summary: SessionSummary) -> dict[str, Any]:
    return {
        "id": summary.id,
        "version": summary.version,
        "title": _encodable(summary.title),
        "text": _encodable(summary.text),
        "first_at": shapes.time_text(summary.first_at),
        "last_at": shapes.time_text(summary.last_at),
        "turn_ids": list(summary.turn_ids),
        "made_by": summary.made_by,
        "made_at": shapes.time_text(summary.made_at),
    }


def note_shape(note: GivenNote) -> dict[str, Any]:
    memories = [{"id": one, "content": note.contents.get(one)} for one in note.memory_ids]
    return {"turn_id": note.turn_id, "receipt_id": note.receipt_id, "memories": memories}


def _encodable(text: str) -> str:
    """As UTF-8 can hold it: each lone surrogate, which a chat's JSON may contain, becomes a replacement character."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _new_message(body: MessageBody) -> NewMessage:
    return NewMessage(
        source=Party(body.source_type, body.source or ""),
        target=Party(body.target_type, body.target or ""),
        content=body.content,
        id=body.id or "",
        at=shapes.time_of(body.at, "at"),
        direction=body.direction,
        trace_id=body.trace_id or "",
        visibility=body.visibility,
    )


# Parameters


def _filter(call: Call, conversation_id: str) -> MessageFilter:
    given = call.parameters
    view = given.get("view", "own")
    if view not in VIEWS or ("view" in given and not given.get("agent_id")):
        raise BadInput(f"view must be {' or '.join(VIEWS)}, together with agent_id")
    return MessageFilter(
        call.user_id,
        conversation_id,
        trace_id=given.get("trace_id", ""),
        agent_id=given.get("agent_id", ""),
        with_shared=VIEWS[view],
        words=tuple(given.get("query", "").split()),
    )


def _limit(parameters: Mapping[str, str], limit_max: int) -> int:
    text = parameters.get("limit", str(min(PAGE_DEFAULT, limit_max)))
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= limit_max):
        raise BadInput(f"limit must be a whole number from 1 to {limit_max}; got {text!r:.40}")
    return int(text)


def _keeps_memories(parameters: Mapping[str, str]) -> bool:
    text = parameters.get("keep_memories", "false")
    if text not in ("true", "false"):
        raise BadInput(f"keep_memories must be true or false; got {text!r:.40}")
    return text == "true"
