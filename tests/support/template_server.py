"""A model server whose models have chat templates of different kinds, and a `/tokenize` of this or that shape.

As llama.cpp it renders at `/apply-template`, and answers 500 where a template refuses.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from upstream import refused

# Templates: where a system message may stand. In `no_twins` also no role may follow itself.
ANYWHERE, FIRST, NOWHERE, NO_TWINS = "anywhere", "first", "nowhere", "no_twins"
# Shapes of `/tokenize`.
VLLM, RENDERS, LLAMA_CPP, MISSING, PROMPT_ONLY = "vllm", "renders", "llama_cpp", "missing", "prompt_only"
SILENT, NONSENSE, GUARDED, REDIRECT = "silent", "nonsense", "guarded", "redirect"


def refusal(template: str, roles: Sequence[str]) -> str:
    """What a template of that kind says to these roles; "" if it takes them."""
    if template == NOWHERE and "system" in roles:
        return "System role not supported"
    if template in (FIRST, NO_TWINS) and "system" in roles[1:]:
        return "System message must be at the beginning."
    if template == NO_TWINS and any(one == other for one, other in pairwise(roles)):
        return "Conversation roles must alternate user/assistant/user/assistant/..."
    return ""


def too_long(window: int, words: int, limit: int) -> str:
    """What vLLM says to a request that does not fit the window."""
    return (
        f"This model's maximum context length is {window} tokens. However, you requested {limit} output tokens and "
        f"your prompt contains {words} input tokens, for a total of {words + limit} tokens. Please reduce the length "
        "of the input prompt or the number of requested output tokens."
    )


@dataclass
class TemplateServer:
    """`templates` by model; a model that is not there is unknown."""

    templates: dict[str, str]
    tokenize: str = VLLM
    chats: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)
    window: int = 0  # tokens, one a word, of prompt and answer together; 0: any length is taken
    models: bytes | None = None  # the answer to `/v1/models`; None: there is no such path
    tokenized: bytes | None = None  # the answer to `/tokenize`, whatever its shape
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def placed(self) -> list[str]:
        """The roles of the last chat's messages."""
        return [message["role"] for message in self.chats[-1]["messages"]]

    async def _chat(self, request: Request) -> Response:
        chat = await request.json()
        self.chats.append(chat)
        if said := self._objection(chat):
            return refused(500 if self.tokenize in (RENDERS, LLAMA_CPP) else 400, said)
        words = sum(len(str(message["content"]).split()) for message in chat["messages"])
        if self.window and words + chat.get("max_tokens", 1) > self.window:
            return refused(400, too_long(self.window, words, chat.get("max_tokens", 1)))
        message = {"role": "assistant", "content": "Noted."}
        return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async def _models(self, request: Request) -> Response:
        del request
        if self.tokenize == SILENT:
            await asyncio.sleep(30)
        return (
            refused(404, "Not Found") if self.models is None else Response(self.models, media_type="application/json")
        )

    async def _tokenize(self, request: Request) -> Response:
        question = await request.json()
        self.questions.append(question)
        if self.tokenized is not None:
            return Response(self.tokenized, media_type="application/json")
        match self.tokenize:
            case "silent":
                await asyncio.sleep(30)
            case "nonsense":
                return Response(b"[" * 100_000, media_type="application/json")
            case "guarded":
                return refused(401, "Unauthorized")
            case "redirect":
                return Response(status_code=307, headers={"location": "/v1/elsewhere"})
            case "llama_cpp" | "renders":
                return JSONResponse({"tokens": []})
            case "prompt_only":
                return refused(400, "field required: prompt")
            case "vllm" if question["model"] in self.templates:
                said, counted = self._objection(question), {"count": 3, "max_model_len": 4096, "tokens": [1, 2, 3]}
                return refused(400, said) if said else JSONResponse(counted)
        return refused(404, "Not Found")

    async def _applied(self, request: Request) -> Response:
        question = await request.json()
        self.questions.append(question)
        if self.tokenize != RENDERS or question["model"] not in self.templates:
            return refused(404, "File Not Found")
        said = self._objection(question)
        return refused(500, said) if said else JSONResponse({"prompt": "<user>Hello."})

    def _objection(self, asked: dict[str, Any]) -> str:
        """What the model's template says to these messages; "" if it takes them."""
        return refusal(self.templates[asked["model"]], [message["role"] for message in asked.get("messages", ())])


@contextmanager
def running_template_server(templates: Mapping[str, str], tokenize: str = VLLM) -> Iterator[TemplateServer]:
    server_of_models = TemplateServer(dict(templates), tokenize)
    routes = [
        Route("/v1/chat/completions", server_of_models._chat, methods=["POST"]),
        Route("/v1/models", server_of_models._models, methods=["GET"]),
    ]
    for base in ("", "/below"):
        routes.append(Route(f"{base}/tokenize", server_of_models._tokenize, methods=["POST"]))
        routes.append(Route(f"{base}/apply-template", server_of_models._applied, methods=["POST"]))
    with served(Starlette(routes=routes), timeout_graceful_shutdown=1) as server_of_models.port:
        yield server_of_models


def models_body(*models: str) -> bytes:
    """The list as servers give it."""
    return json.dumps({"object": "list", "data": [{"id": model, "object": "model"} for model in models]}).encode()


def chat_body(model: str, *texts: str, **more: object) -> bytes:
    """A chat of alternating user and assistant messages, beginning and ending with the user."""
    messages = [{"role": "assistant" if number % 2 else "user", "content": text} for number, text in enumerate(texts)]
    return json.dumps({"model": model, "messages": messages, **more}).encode()
