"""Extraction models by script: a server that answers each kind of question by a rule of the test, and what was asked.

The questions are told apart by the schema that came along, as a real server would follow it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from chat_server import FakeModelServer, running_chat_server

from memory.adapters.openai import ChatServer, OpenAiChatModel

Answer = Callable[[str], str]
"""What is asked, the last message of the request → the answer as it is sent."""


def yes(_question: str) -> str:
    return '{"keep":"yes"}'


def no(_question: str) -> str:
    return '{"keep":"no"}'


def nothing(_question: str) -> str:
    return '{"means":""}'


def different(_question: str) -> str:
    return '{"is":"different"}'


def no_facts(_question: str) -> str:
    return '{"facts":[]}'


def a_fact(quote: str, text: str, **more: str) -> dict[str, str]:
    plain = {"type": "semantic", "category": "fact", "subject": "user", "told": "explicit", "sure": "high"}
    return {"quote": quote, "text": text, **plain, "weight": "medium", "starts": "", "ends": "", **more}


def facts(*drafted: Mapping[str, str]) -> Answer:
    return lambda _question: json.dumps({"facts": list(drafted)}, ensure_ascii=False)


def in_turn(*answers: str) -> Answer:
    """One after the other; the last one again and again."""
    left = list(answers)
    return lambda _question: left.pop(0) if len(left) > 1 else left[0]


@dataclass(frozen=True, slots=True)
class ScriptedModel:
    """The model as learning gets it, and the server behind it."""

    model: OpenAiChatModel
    server: FakeModelServer

    @property
    def asked(self) -> Sequence[dict[str, Any]]:
        return self.server.asked

    @property
    def questions(self) -> list[str]:
        return [body["messages"][-1]["content"] for body in self.server.asked]


def scripted(
    *, keep: Answer = yes, means: Answer = nothing, draft: Answer = no_facts, bears: Answer = different
) -> Callable[[dict[str, Any]], str]:
    by_field = {"keep": keep, "means": means, "facts": draft, "is": bears}

    def says(body: dict[str, Any]) -> str:
        (field,) = body["response_format"]["json_schema"]["schema"]["properties"]
        return by_field[field](body["messages"][-1]["content"])

    return says


@asynccontextmanager
async def running_model(**answers: Answer) -> AsyncIterator[ScriptedModel]:
    async with running_chat_server() as server, OpenAiChatModel(ChatServer(server.url, "scripted")) as model:
        server.says = scripted(**answers)
        yield ScriptedModel(model, server)
