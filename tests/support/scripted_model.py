"""A real server of `/v1/chat/completions` that reads as `PlainReader` does, and relates pairs by a rule of the test.

In the test's own loop, or, for workers, in a thread of its own: no model's score decides what is said.

Its answers have the form that our own reader by chat model asks for; what was asked is kept.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from chat_server import FakeModelServer, running_chat_server
from plain_reader import by_words, claim_of
from reading_parts import a_claim, a_verdict, claims, verdicts
from served_app import in_own_loop
from written_settings import named_model

from memory.adapters.models.openai_chat import ChatServer, OpenAiChatModel
from memory.model import Message, Scope, Turn
from memory.ports import Completion, PairVerdict, StatementPair

UNIT = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
PAIR = re.compile(r"^\[(\d+)\] older: (.*)\n\[\1\] newer: (.*)$", re.MULTILINE)
SOMETIME = Turn("t", Scope("ann", session_id="s"), 0.0, ())

Relates = Callable[[StatementPair], PairVerdict]


@dataclass(frozen=True, slots=True)
class ScriptedModel:
    """The model as readers get it, and the server behind it."""

    model: OpenAiChatModel
    server: FakeModelServer

    @property
    def read(self) -> Sequence[str]:
        """The questions that asked for claims."""
        return [question for question in map(question_of, self.server.asked) if not PAIR.search(question)]

    @property
    def related(self) -> Sequence[str]:
        """The questions that asked about pairs."""
        return [question for question in map(question_of, self.server.asked) if PAIR.search(question)]


def question_of(body: dict[str, Any]) -> str:
    """What was asked last; an answer that was sent back stands behind it."""
    asked: list[str] = [message["content"] for message in body["messages"] if message["role"] == "user"]
    return next(text for text in reversed(asked) if UNIT.search(text))


def scripted(
    *, relates: Relates = by_words, without: Callable[[str], bool] = lambda unit: False
) -> Callable[[dict[str, Any]], str]:
    """For `FakeModelServer.says`. `without`: units that it leaves out."""

    def says(body: dict[str, Any]) -> str:
        question = question_of(body)
        if pairs := PAIR.findall(question):
            return verdicts(*(_verdict(int(number), relates(StatementPair(*pair))) for number, *pair in pairs))
        units = [(int(number), text) for number, text in UNIT.findall(question)]
        return claims(*(one for number, text in units if not without(text) for one in _claims(number, text)))

    return says


def _claims(number: int, text: str) -> list[dict[str, Any]]:
    claim = claim_of(text, SOMETIME, made_by="")
    if claim is None:
        return []
    values, is_denied = list(claim.values), not claim.is_affirmed
    return [a_claim(number, act=claim.act, about=claim.relation, attr=claim.attribute, values=values, no=is_denied)]


def _verdict(number: int, said: PairVerdict) -> dict[str, Any]:
    return a_verdict(number, said.relation, "it", "high" if said.confidence >= 0.8 else "low")


class LiteralChat:
    """`memory.ports.ChatModel` that answers so, without a server."""

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        asked = [{"role": message.role, "content": message.content} for message in messages]
        return Completion(scripted()({"messages": asked})[: 8 * max_tokens])


@asynccontextmanager
async def running_model(*, relates: Relates = by_words) -> AsyncIterator[ScriptedModel]:
    async with running_chat_server() as server, OpenAiChatModel(ChatServer(server.url, "scripted")) as model:
        server.says = scripted(relates=relates)
        yield ScriptedModel(model, server)


@contextmanager
def running_table_model(*, relates: Relates = by_words) -> Iterator[dict[str, Any]]:
    """Settings that have it read. `relates`: what it says of pairs."""
    with in_own_loop(running_chat_server()) as (server, _):
        server.says = scripted(relates=relates)
        model = named_model(server.url, llm_model_name="table")
        yield {"external_models": [model], "memory": {"learn": {"reader": "model", "idle_seconds": 0.2}}}
