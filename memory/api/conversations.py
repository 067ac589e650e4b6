"""The endpoints of the conversation record: sessions, conversations and their messages.

Each has a path below `/v1/memory`, which the proxy's port serves too, and most a short one on the API port alone: the
short names may be the upstream's own (OpenAI and vLLM have `/v1/conversations`), so the proxy never takes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec
from litestar import Controller, delete, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, JSONBody, QueryParameter
from litestar.response import Stream

from memory.api import conversation_views as views
from memory.api.bodies import LenientJsonBody
from memory.api.operations import READS, WRITES, PathId, TheCall, operation
from memory.api.transfers import JSON_LINES
from memory.errors import BadInput
from memory.model import MessageFilter, Scope
from memory.service.conversations import MESSAGES_PER_PAGE_MAX, SESSIONS_PER_PAGE_MAX

PAGE_DEFAULT = 100
COMPRESS_BY_DEFAULT = views.CompressBody()

SessionLimit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=SESSIONS_PER_PAGE_MAX)]
MessageLimit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=MESSAGES_PER_PAGE_MAX)]


@dataclass(frozen=True, slots=True)
class AskedMessages:
    """Which messages a call is about, besides the conversation. `view`: of that agent; `words`: all of them in each."""

    agent_id: FromQuery[str] = ""
    view: FromQuery[Literal["own", "visible"] | None] = None
    trace_id: FromQuery[str] = ""
    words: Annotated[str, QueryParameter(name="query")] = ""

    def __post_init__(self) -> None:
        if self.view is not None and not self.agent_id:
            raise BadInput("view must be own or visible, together with agent_id")

    def of(self, user_id: str, conversation_id: str) -> MessageFilter:
        return MessageFilter(
            user_id,
            conversation_id,
            trace_id=self.trace_id,
            agent_id=self.agent_id,
            with_shared=self.view == "visible",
            words=tuple(self.words.split()),
        )


ASKED = {"asked": Provide(AskedMessages, sync_to_thread=False)}


class SessionsController(Controller):
    path = "/sessions"
    tags = ("sessions",)

    @operation(get, "/", "listSessions", allowed=READS)
    async def show_page(
        self, call: TheCall, limit: SessionLimit = SESSIONS_PER_PAGE_MAX, cursor: FromQuery[str] = ""
    ) -> views.SessionPageView:
        """One page of sessions, the latest active first."""
        page = await call.library.conversations.sessions(call.user_id, limit=limit, cursor=cursor)
        opened = [await call.library.conversations.is_open(call.user_id, one) for one in page.items]
        shown = [views.session_view(one, is_open=is_open) for one, is_open in zip(page.items, opened, strict=True)]
        return views.SessionPageView(shown, page.next_cursor or None)

    @operation(get, "/{id:str}", "getSession", allowed=READS, errors=(404,))
    async def show(
        self, call: TheCall, path_id: PathId, limit: MessageLimit = PAGE_DEFAULT, cursor: FromQuery[str] = ""
    ) -> views.ShownSession:
        """A session with the messages of its live branch, to go on elsewhere. Branches that were left are listed apart.

        They and the notes come with the first page. The messages of all branches: `getConversation`.
        """
        conversations, user_id = call.library.conversations, call.user_id
        session = await conversations.session(user_id, path_id)
        where = MessageFilter(user_id, session.id, only_live=True)
        page = await conversations.page(where, limit=limit, cursor=cursor)
        left = [] if cursor else await conversations.abandoned(user_id, session.id)
        notes = [] if cursor else await conversations.notes_given(user_id, session.id)
        summary = await conversations.summary(user_id, session.id)
        is_open = await conversations.is_open(user_id, session)
        return views.ShownSession(
            **msgspec.structs.asdict(views.session_view(session, is_open=is_open)),
            messages=list(map(views.message_view, page.items)),
            next_cursor=page.next_cursor or None,
            notes=list(map(views.note_view, notes)),
            abandoned=list(map(views.branch_view, left)),
            summary=None if summary is None else views.summary_view(summary),
        )

    @operation(post, "/{id:str}/end", "endSession", allowed=WRITES, errors=(404,), status_code=202)
    async def end(self, call: TheCall, path_id: PathId) -> views.EndedSession:
        """Ends a session; its summary is written soon after its turns are learnt."""
        await call.library.end_session(call.user_id, path_id)
        return views.EndedSession(True)

    @operation(delete, "/{id:str}", "deleteSession", allowed=WRITES, errors=(404, 409))
    async def delete(
        self, call: TheCall, path_id: PathId, keep_memories: FromQuery[bool] = False
    ) -> views.DeletedSessionView:
        """Deletes the record of a session, and memories based on it alone unless they are to be kept."""
        deleted = await call.library.conversations.delete_session(call.user_id, path_id, keep_memories=keep_memories)
        counts = views.SessionDeletions(deleted.turns, deleted.messages, deleted.memories)
        return views.DeletedSessionView(counts, deleted.kept_memories)


class ConversationsController(Controller):
    path = "/conversations/{id:str}"
    tags = ("conversations",)

    @operation(get, "/messages", "getConversation", allowed=READS, errors=(404,), dependencies=ASKED)
    async def show(
        self,
        call: TheCall,
        path_id: PathId,
        asked: NamedDependency[AskedMessages],
        limit: MessageLimit = PAGE_DEFAULT,
        cursor: FromQuery[str] = "",
    ) -> views.MessagePageView:
        """One page of the messages of a conversation, in order."""
        where = asked.of(call.user_id, path_id)
        page = await call.library.conversations.conversation(where, limit=limit, cursor=cursor)
        return views.MessagePageView(list(map(views.message_view, page.items)), page.next_cursor or None)

    @operation(post, "/messages", "addMessages", allowed=WRITES, dto=LenientJsonBody, status_code=201)
    async def add(self, call: TheCall, path_id: PathId, data: JSONBody[views.MessagesBody]) -> views.AddedMessages:
        """Records messages that the filter does not see. Repeating a message with an id changes nothing."""
        scope = Scope(call.user_id, data.project_id or "", path_id)
        return views.AddedMessages(
            await call.library.conversations.add(scope, list(map(views.new_message, data.messages)))
        )

    @operation(post, "/trim", "trimConversation", allowed=WRITES, errors=(404,))
    async def trim(self, call: TheCall, path_id: PathId, data: JSONBody[views.TrimBody]) -> views.TrimmedConversation:
        """Deletes all but the last messages. Memories stay, and so do turns that are not learnt yet."""
        return views.TrimmedConversation(
            await call.library.conversations.trim(call.user_id, path_id, keep_last=data.keep_last)
        )

    @operation(post, "/compress", "compressConversation", allowed=WRITES, errors=(404,))
    async def compress(
        self, call: TheCall, path_id: PathId, data: JSONBody[views.CompressBody] = COMPRESS_BY_DEFAULT
    ) -> views.CompressedConversation:
        """Shortens outputs and tool results before the last messages. The originals are gone."""
        changed = await call.library.conversations.compress(
            call.user_id, path_id, keep_last=data.keep_last, characters_max=data.characters_max
        )
        return views.CompressedConversation(changed)


class MessagesController(Controller):
    path = "/v1/memory/messages"
    tags = ("messages",)

    @operation(get, "/", "listMessages", allowed=READS, dependencies=ASKED)
    async def show_page(
        self,
        call: TheCall,
        asked: NamedDependency[AskedMessages],
        conversation_id: FromQuery[str] = "",
        limit: MessageLimit = PAGE_DEFAULT,
        cursor: FromQuery[str] = "",
    ) -> views.MessagePageView:
        """One page of messages across conversations: by trace, agent or words."""
        where = asked.of(call.user_id, conversation_id)
        page = await call.library.conversations.page(where, limit=limit, cursor=cursor)
        return views.MessagePageView(list(map(views.message_view, page.items)), page.next_cursor or None)

    @operation(get, "/export", "exportMessages", allowed=READS, dependencies=ASKED, media_type=JSON_LINES)
    async def export(
        self, call: TheCall, asked: NamedDependency[AskedMessages], conversation_id: FromQuery[str] = ""
    ) -> Stream:
        """All messages as JSON lines, in the order of the record."""
        where = asked.of(call.user_id, conversation_id)
        messages = call.library.conversations.export(where)
        lines = (msgspec.json.encode(views.message_view(message)) + b"\n" async for message in messages)
        return Stream(lines, media_type=JSON_LINES)

    @operation(delete, "/{id:str}", "deleteMessage", allowed=WRITES, errors=(404, 409))
    async def delete(
        self, call: TheCall, path_id: PathId, keep_memories: FromQuery[bool] = False
    ) -> views.DeletedMessageView:
        """Deletes one message; of a user's message also what is based on its turn alone."""
        deleted = await call.library.conversations.delete_message(call.user_id, path_id, keep_memories=keep_memories)
        return views.DeletedMessageView(views.MessageDeletions(1, deleted))


class ReceiptMessagesController(Controller):
    path = "/v1/memory/receipts"
    tags = ("receipts",)

    @operation(get, "/{id:str}/messages", "getReceiptMessages", allowed=READS, errors=(404,))
    async def show(self, call: TheCall, path_id: PathId) -> views.ReceiptMessagesView:
        """The messages of the turn that has this receipt. 404 if the record does not hold it (any more)."""
        found = await call.library.conversations.of_receipt(call.user_id, path_id)
        return views.ReceiptMessagesView(list(map(views.message_view, found)))
