"""The endpoint of the chat that a receipt is about, as the conversation record holds it."""

from __future__ import annotations

import msgspec
from litestar import Controller, get

from memory.api.conversation_views import MessageView, message_view
from memory.api.operations import READS, PathId, TheCaller, TheLibrary, operation


class ReceiptMessagesView(msgspec.Struct, frozen=True):
    """What the user said, and the answer, in order; without tool traffic."""

    messages: list[MessageView]


class ReceiptMessagesController(Controller):
    path = "/v1/memory/receipts"
    tags = ("receipts",)

    @operation(get, "/{id:str}/messages", "getReceiptMessages", allowed=READS, errors=(404,))
    async def show(self, library: TheLibrary, caller: TheCaller, path_id: PathId) -> ReceiptMessagesView:
        """The messages of the turn that has this receipt. 404 if the record does not hold it (any more)."""
        found = await library.conversations.of_receipt(caller.user_id, path_id)
        return ReceiptMessagesView(list(map(message_view, found)))
