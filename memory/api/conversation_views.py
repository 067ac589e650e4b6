"""The JSON of the conversation record: sessions, messages, summaries, and the notes that requests were given."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memory.api.memory_views import GivenText, GivenTime
from memory.api.receipts import NotedMemory
from memory.api.times import TimeText, time_of
from memory.api.views import view_of
from memory.model import MessageDirection, Party, PartyType, RecordedMessage, Session, SessionSummary, Visibility
from memory.model.recorded import AbandonedBranch
from memory.service.conversations import KEEP_LAST_MAX, GivenNote, NewMessage

KEEP_LAST_DEFAULT = 20
COMPRESSED_CHARACTERS_DEFAULT = 500

_KeepLast = Annotated[int, Meta(ge=0, le=KEEP_LAST_MAX)]


class MessageBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A message that the filter does not see, such as one between agents. It is not learnt."""

    source_type: PartyType
    target_type: PartyType
    content: str
    source: GivenText = None
    target: GivenText = None
    id: GivenText = None
    at: GivenTime = None
    direction: MessageDirection | None = msgspec.field(name="type", default=None)
    trace_id: GivenText = None
    visibility: Visibility = Visibility.USER


class MessagesBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    messages: list[MessageBody]
    project_id: GivenText = None


class TrimBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    keep_last: _KeepLast


class CompressBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    keep_last: _KeepLast = KEEP_LAST_DEFAULT
    characters_max: int = COMPRESSED_CHARACTERS_DEFAULT


class MessageView(msgspec.Struct, frozen=True):
    """`direction` is `type` in JSON: seen from the assistant. `turn_id` is null for an added message."""

    id: str
    conversation_id: str
    trace_id: str | None
    source: str | None
    source_type: PartyType
    target: str | None
    target_type: PartyType
    direction: MessageDirection = msgspec.field(name="type")
    content: str
    at: TimeText
    unix_time: float
    project_id: str | None
    turn_id: str | None
    visibility: Visibility


class MessagePageView(msgspec.Struct, frozen=True):
    messages: list[MessageView]
    next_cursor: str | None


class ReceiptMessagesView(msgspec.Struct, frozen=True):
    """What the user said, and the answer, in order; without tool traffic."""

    messages: list[MessageView]


class SessionView(msgspec.Struct, frozen=True):
    """`title`: the beginning of the first user message; `status`: open or ended."""

    id: str
    title: str
    status: str
    first_at: TimeText
    last_at: TimeText
    turns: int
    messages_added: int
    agent_ids: list[str]
    pending_turns: int


class SessionPageView(msgspec.Struct, frozen=True):
    """The latest active first."""

    sessions: list[SessionView]
    next_cursor: str | None


class SummaryView(msgspec.Struct, frozen=True):
    id: str
    version: int
    title: str
    text: str
    first_at: TimeText
    last_at: TimeText
    turn_ids: list[str]
    made_by: str
    made_at: TimeText


class GivenNoteView(msgspec.Struct, frozen=True):
    """What a request of the session was given, as long as its receipt is kept."""

    turn_id: str
    receipt_id: str
    memories: list[NotedMemory]


class AbandonedBranchView(msgspec.Struct, frozen=True):
    """Turns that the session no longer continues from. `left_after`: the turn that it continued, null at the beginning.

    `left_at`: how many turns the live branch has up to that one, null if it is deleted or abandoned as well.
    """

    left_after: str | None
    left_at: int | None
    turn_ids: list[str]
    begun_at: TimeText
    title: str


class ShownSession(SessionView, frozen=True):
    """A session with a page of the messages of its live branch; notes and left branches come with the first page."""

    messages: list[MessageView]
    next_cursor: str | None
    notes: list[GivenNoteView]
    abandoned: list[AbandonedBranchView]
    summary: SummaryView | None


class EndedSession(msgspec.Struct, frozen=True):
    ended: bool


class SessionDeletions(msgspec.Struct, frozen=True):
    turns: int
    messages: int
    memories: int


class DeletedSessionView(msgspec.Struct, frozen=True):
    deleted: SessionDeletions
    kept_memories: int


class MessageDeletions(msgspec.Struct, frozen=True):
    messages: int
    memories: int


class DeletedMessageView(msgspec.Struct, frozen=True):
    deleted: MessageDeletions


class AddedMessages(msgspec.Struct, frozen=True):
    ids: list[str]


class TrimmedConversation(msgspec.Struct, frozen=True):
    deleted: int


class CompressedConversation(msgspec.Struct, frozen=True):
    compressed: int


def new_message(body: MessageBody) -> NewMessage:
    return NewMessage(
        source=Party(body.source_type, body.source or ""),
        target=Party(body.target_type, body.target or ""),
        content=body.content,
        id=body.id or "",
        at=time_of(body.at, "at"),
        direction=body.direction,
        trace_id=body.trace_id or "",
        visibility=body.visibility,
    )


def message_view(message: RecordedMessage) -> MessageView:
    return view_of(
        MessageView,
        message,
        trace_id=_encodable(message.trace_id) or None,
        source=_encodable(message.source.name) or None,
        source_type=message.source.type,
        target=_encodable(message.target.name) or None,
        target_type=message.target.type,
        content=_encodable(message.content),
        unix_time=message.at,
    )


def session_view(session: Session, *, is_open: bool) -> SessionView:
    status, title = "open" if is_open else "ended", _encodable(session.title)
    return view_of(SessionView, session, title=title, status=status, pending_turns=session.unlearnt_turns)


def summary_view(summary: SessionSummary) -> SummaryView:
    return view_of(SummaryView, summary, title=_encodable(summary.title), text=_encodable(summary.text))


def note_view(note: GivenNote) -> GivenNoteView:
    memories = [NotedMemory(one, note.contents.get(one)) for one in note.memory_ids]
    return GivenNoteView(note.turn_id, note.receipt_id, memories)


def branch_view(branch: AbandonedBranch) -> AbandonedBranchView:
    return view_of(AbandonedBranchView, branch, title=_encodable(branch.title))


def _encodable(text: str) -> str:
    """As UTF-8 can hold it: each lone surrogate, which a chat's JSON may contain, becomes a replacement character."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
