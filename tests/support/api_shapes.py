"""Chats in the form of each API, for suites that run on every one of them: how to ask, and what went along."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.chat.api_shape import ApiShape
from memory.chat.completions import COMPLETIONS, ChatRequest, read_chat_request
from memory.chat.messages import MESSAGES
from memory.chat.responses import RESPONSES

Message = Mapping[str, Any]


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


@dataclass(frozen=True, slots=True)
class AskedShape:
    """Messages are those of chat completions, in whatever form a client of this API sends them: here, as they are."""

    name: str
    shape: ApiShape

    def body(self, messages: Sequence[Message], **more: Any) -> dict[str, Any]:
        """The body with these messages; `more` are further members."""
        return {"model": "m", "messages": list(messages), **more}

    def note(self, received: bytes, question: str) -> str:
        """What stands in the prompt beside the messages of a client that sent no system message."""
        messages = json.loads(received)["messages"]
        assert messages[-1] == {"role": "user", "content": question}
        return "\n".join(str(message["content"]) for message in messages if message["role"] == "system")


class AskedResponses(AskedShape):
    __slots__ = ()

    def body(self, messages: Sequence[Message], **more: Any) -> dict[str, Any]:
        return {"model": "m", "input": [item for message in messages for item in _items(message)], **more}

    def note(self, received: bytes, question: str) -> str:
        body = json.loads(received)
        return _beside(question, body.get("instructions", ""), body["input"][-1]["content"])


class AskedMessages(AskedShape):
    __slots__ = ()

    def body(self, messages: Sequence[Message], **more: Any) -> dict[str, Any]:
        instructions = next((message["content"] for message in messages if message["role"] == "system"), None)
        system = {} if instructions is None else {"system": instructions}
        said = [_blocks(message) for message in messages if message["role"] != "system"]
        return {"model": "m", "max_tokens": 500, **system, "messages": said, **more}

    def note(self, received: bytes, question: str) -> str:
        body = json.loads(received)
        return _beside(question, body.get("system", ""), body["messages"][-1]["content"])


def _beside(question: str, instructions: str, asked: str) -> str:
    assert asked.endswith(question)
    return "\n".join(filter(None, (instructions, asked.removesuffix(question))))


def _blocks(message: Message) -> dict[str, Any]:
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return {"role": "user", "content": [result]}
    content = message.get("content")
    if content is not None and not message.get("tool_calls"):
        return {"role": message["role"], "content": content}
    text = [] if content is None else [{"type": "text", "text": content}]
    calls = [
        {"type": "tool_use", "id": one["id"], "name": one["function"].get("name", "f"), "input": {}}
        for one in message.get("tool_calls", ())
    ]
    return {"role": message["role"], "content": [*text, *calls]}


def _items(message: Message) -> Iterator[dict[str, Any]]:
    if message["role"] == "tool":
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
        return
    if message.get("content") is not None:
        yield {"role": message["role"], "content": message["content"]}
    for call in message.get("tool_calls", ()):
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


ASKED_COMPLETIONS = AskedShape("completions", COMPLETIONS)
ASKED_RESPONSES = AskedResponses("responses", RESPONSES)
ASKED_MESSAGES = AskedMessages("messages", MESSAGES)
SHAPES: tuple[AskedShape, ...] = (ASKED_COMPLETIONS, ASKED_RESPONSES, ASKED_MESSAGES)


def read_completion(*messages: Message, **more: Any) -> ChatRequest:
    return read_chat_request(json.dumps(ASKED_COMPLETIONS.body(messages, **more)).encode())


def read_response(said: Any, **more: Any) -> ChatRequest:
    """`said`: the "input" as it is sent."""
    return read_chat_request(json.dumps({"model": "m", "input": said, **more}).encode(), RESPONSES)
