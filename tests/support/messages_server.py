"""A server of `POST /v1/messages` as vLLM has it: what it sends, and what it was sent."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from message_objects import PATH, Item, message_events, message_object, text_block
from starlette.responses import Response
from upstream import Recorder, refused, streamed_or_whole


@dataclass
class MessagesServer(Recorder):
    """Set `content` before a request: the blocks of the next answers. Read `received` after it."""

    content: list[list[Item]] = field(default_factory=list)  # in order; then it says "Noted."
    error: str = ""  # its message, in the place of an answer
    streamed: list[bytes] = field(default_factory=list)  # the events of the last answer
    ids: Iterator[int] = field(default_factory=itertools.count)

    def behave(self) -> None:
        """As at the start, but for what was received."""
        self.content.clear()
        self.error = ""

    async def _answer(self, method: str, path: str, body: bytes) -> Response:
        if (method, path) != ("POST", PATH):
            return refused(404, "not found")
        if self.error:
            return refused(400, self.error)
        asked = json.loads(body)
        if any("content" not in message for message in asked["messages"]):
            raise KeyError("content")
        content = self.content.pop(0) if self.content else [text_block("Noted.")]
        message = message_object(content, message_id=f"msg_{next(self.ids)}")
        self.streamed = message_events(message)
        return streamed_or_whole(asked, message, self.streamed)
