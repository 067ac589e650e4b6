"""The windows of models: what the upstream says of them, asked of real servers of every shape. On every adapter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memory.adapters.models.window_probe import WindowProbe
from memory.chat.token_estimate import estimated_tokens

PROBES: dict[str, Callable[[str], WindowProbe]] = {"vllm": WindowProbe}  # one line per adapter
LISTING = {"data": [{"id": "small", "max_model_len": 4096}, {"id": "large", "max_model_len": 131072}, {"id": "mute"}]}


@dataclass
class ModelServer:
    """`tokenized` and `listed`: the answers, None for a path that is missing; `asked`: bodies of `/tokenize`."""

    tokenized: dict[str, Any] | bytes | None = None
    listed: dict[str, Any] | bytes | None = None
    seconds: float = 0.0
    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def _tokenize(self, request: Request) -> Response:
        self.asked.append(await request.json())
        return await self._answer(self.tokenized)

    async def _models(self, request: Request) -> Response:
        del request
        return await self._answer(self.listed)

    async def _answer(self, answer: dict[str, Any] | bytes | None) -> Response:
        await asyncio.sleep(self.seconds)
        if answer is None:
            return JSONResponse({"error": {}}, status_code=404)
        return Response(answer if isinstance(answer, bytes) else json.dumps(answer), media_type="application/json")


@contextmanager
def running(server: ModelServer) -> Iterator[str]:
    routes = [Route("/tokenize", server._tokenize, methods=["POST"]), Route("/v1/models", server._models)]
    with served(Starlette(routes=routes), timeout_graceful_shutdown=1) as server.port:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(params=sorted(PROBES))
def probe_of(request: pytest.FixtureRequest) -> Callable[[str], WindowProbe]:
    return PROBES[request.param]


async def test_a_server_that_lists_windows_tells_them(probe_of: Callable[[str], WindowProbe]) -> None:
    with running(ModelServer(listed=LISTING)) as url:
        for base in (url, f"{url}/v1", f"{url}/v1/"):
            async with probe_of(base) as probe:
                found = [await probe.window(model) for model in ("small", "large", "mute", "other", "", "x" * 999)]
                assert [one.tokens if one else None for one in found] == [4096, 131072, None, None, None, None]


async def test_a_server_that_counts_tokens_corrects_our_estimate(probe_of: Callable[[str], WindowProbe]) -> None:
    server = ModelServer(tokenized={"count": 1, "max_model_len": 8192}, listed=LISTING)
    with running(server) as url:
        async with probe_of(url) as probe:
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
async def test_a_server_of_another_shape_tells_nothing(
    probe_of: Callable[[str], WindowProbe], answer: dict[str, Any] | bytes | None
) -> None:
    with running(ModelServer(answer, answer)) as url:
        async with probe_of(url) as probe:
            assert await probe.window("m") is None
    for nowhere in (url, ""):
        async with probe_of(nowhere) as probe:
            assert await probe.window("m") is None


async def test_a_silent_server_tells_nothing_in_time(probe_of: Callable[[str], WindowProbe]) -> None:
    with running(ModelServer(LISTING, LISTING, seconds=30)) as url:
        async with probe_of(url) as probe:
            assert await probe.window("small") is None
