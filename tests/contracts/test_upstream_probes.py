"""What the upstream says of its models: their chat templates and windows, asked of real servers of every shape."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import template_server as shapes
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from template_server import models_body, running_template_server

from memory.adapters.models import upstream_models
from memory.adapters.models.upstream_models import MODELS_NAMED_MAX, UpstreamModels
from memory.chat.token_estimate import estimated_tokens
from memory.model import Placement

MODELS = {"free": shapes.ANYWHERE, "strict": shapes.FIRST, "none": shapes.NOWHERE, "pairs": shapes.NO_TWINS}
LISTING = {"data": [{"id": "small", "max_model_len": 4096}, {"id": "large", "max_model_len": 131072}, {"id": "mute"}]}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is not speed."""
    monkeypatch.setattr(upstream_models, "SECONDS_MAX", 60.0)


async def test_a_server_that_is_silent_or_not_there_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with running_template_server(MODELS) as server:
        there = server.url
    for nowhere in (there, ""):
        async with UpstreamModels(nowhere) as probe:
            assert await probe.placement("strict") is await probe.window("small") is None
            assert list(await probe.models()) == []
    monkeypatch.setattr(upstream_models, "SECONDS_MAX", 0.1)
    with running_template_server(MODELS, shapes.SILENT) as server:
        async with UpstreamModels(server.url) as templates:
            assert await asyncio.gather(templates.placement("strict"), templates.placement("free")) == [None, None]
    with running_model_server(ModelServer(LISTING, LISTING, is_silent=True)) as url:
        async with UpstreamModels(url) as windows:
            assert await windows.window("small") is None


# Templates


@pytest.mark.parametrize("shape", [shapes.VLLM, shapes.RENDERS])
@pytest.mark.parametrize(
    ("model", "placement"),
    [
        ("free", Placement.BEFORE_LAST_USER),
        ("strict", Placement.SYSTEM),
        ("pairs", Placement.SYSTEM),
        ("none", Placement.OFF),
        ("unheard of", None),
        ("", None),
        ("\ud800", None),
        ("x" * 10_000, None),
    ],
)
async def test_a_server_that_renders_templates_tells_where_notes_may_stand(
    model: str, placement: Placement | None, shape: str
) -> None:
    with running_template_server(MODELS, shape) as server:
        for base in (server.url, f"{server.url}/v1/", f"{server.url}/below/v1"):
            async with UpstreamModels(base) as probe:
                assert await probe.placement(model) is placement


@pytest.mark.parametrize(
    "shape", [shapes.LLAMA_CPP, shapes.MISSING, shapes.PROMPT_ONLY, shapes.NONSENSE, shapes.GUARDED, shapes.REDIRECT]
)
async def test_a_server_of_another_shape_tells_nothing(shape: str) -> None:
    with running_template_server(MODELS, shape) as server:
        async with UpstreamModels(server.url) as probe:
            assert [await probe.placement(model) for model in MODELS] == [None] * len(MODELS)


async def test_a_server_names_its_models() -> None:
    with running_template_server(MODELS) as server:
        server.models = models_body("one", "two", *(f"more-{number}" for number in range(100)))
        for base in (server.url, f"{server.url}/v1/"):
            async with UpstreamModels(base) as probe:
                named = await probe.models()
                assert named[:2] == ["one", "two"]
                assert len(named) == MODELS_NAMED_MAX


async def test_many_who_ask_at_once_and_again_cost_one_question() -> None:
    with running_template_server(MODELS) as server:
        async with UpstreamModels(server.url) as probe:
            told = await asyncio.gather(*(probe.placement("free") for _ in range(50)))
            assert {*told, await probe.placement("free")} == {Placement.BEFORE_LAST_USER}
            assert len(server.questions) == 1


@pytest.mark.parametrize(
    "answer", [None, b"", b"[" * 100_000, b'{"data": 3}', b'{"data": [{"id": 3}]}', b'{"data":[]}']
)
async def test_a_server_that_names_no_models_costs_nothing(answer: bytes | None) -> None:
    with running_template_server(MODELS) as server:
        server.models = answer
        async with UpstreamModels(server.url) as probe:
            assert list(await probe.models()) == []


# Windows


@dataclass
class ModelServer:
    """`tokenized` and `listed`: the answers, None for a path that is missing; `asked`: bodies of `/tokenize`."""

    tokenized: dict[str, Any] | bytes | None = None
    listed: dict[str, Any] | bytes | None = None
    is_silent: bool = False
    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def _tokenize(self, request: Request) -> Response:
        self.asked.append(await request.json())
        return await self._answer(self.tokenized)

    async def _models(self, request: Request) -> Response:
        del request
        return await self._answer(self.listed)

    async def _answer(self, answer: dict[str, Any] | bytes | None) -> Response:
        await asyncio.sleep(30 if self.is_silent else 0)
        if answer is None:
            return JSONResponse({"error": {}}, status_code=404)
        return Response(answer if isinstance(answer, bytes) else json.dumps(answer), media_type="application/json")


@contextmanager
def running_model_server(server: ModelServer) -> Iterator[str]:
    routes = [Route("/tokenize", server._tokenize, methods=["POST"]), Route("/v1/models", server._models)]
    with served(Starlette(routes=routes), timeout_graceful_shutdown=1) as server.port:
        yield f"http://127.0.0.1:{server.port}"


async def test_a_server_that_lists_windows_tells_them() -> None:
    with running_model_server(ModelServer(listed=LISTING)) as url:
        for base in (url, f"{url}/v1", f"{url}/v1/"):
            async with UpstreamModels(base) as probe:
                found = [await probe.window(model) for model in ("small", "large", "mute", "other", "", "x" * 999)]
                assert [one.tokens if one else None for one in found] == [4096, 131072, None, None, None, None]


async def test_a_server_that_counts_tokens_corrects_our_estimate() -> None:
    server = ModelServer(tokenized={"count": 1, "max_model_len": 8192}, listed=LISTING)
    with running_model_server(server) as url:
        async with UpstreamModels(url) as probe:
            await probe.window("m")
            (asked,) = server.asked
            assert asked["model"] == "m"
            sample = estimated_tokens(asked["prompt"])
            server.tokenized = {"count": round(sample * 1.3), "max_model_len": 8192}
            window = await probe.window("m")
            assert window is not None
            assert (window.tokens, round(window.per_estimate, 2)) == (8192, 1.3)
            server.tokenized = {"count": 10_000_000, "max_model_len": 8192}
            window = await probe.window("m")
            assert window is not None
            assert window.per_estimate < 2, "one strange answer must not leave notes without room"


@pytest.mark.parametrize(
    "answer",
    [None, b"", b"[" * 100_000, b"3", {"data": 3}, {"count": 3}, {"data": [{"id": "m", "max_model_len": -1}]}],
)
async def test_a_server_of_another_shape_tells_no_window(answer: dict[str, Any] | bytes | None) -> None:
    with running_model_server(ModelServer(answer, answer)) as url:
        async with UpstreamModels(url) as probe:
            assert await probe.window("m") is None
