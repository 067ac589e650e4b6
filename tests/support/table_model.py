"""A chat model that reads as `PlainReader` does, for products and workers: no model's score decides what is said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plain_reader import by_words
from scripted_model import Relates, scripted
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


@contextmanager
def running_table_model(*, relates: Relates = by_words) -> Iterator[dict[str, Any]]:
    """Settings that have it read. `relates`: what it says of pairs."""
    says = scripted(relates=relates)

    async def answer(request: Request) -> JSONResponse:
        message = {"role": "assistant", "content": says(await request.json())}
        return JSONResponse({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    with served(Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])) as port:
        endpoint = {"address": "127.0.0.1", "port": port}
        model = {"model_role": "memory_extraction", "llm_model_name": "table", "llm_endpoint": endpoint}
        yield {"external_models": [model], "memory": {"learn": {"reader": "model", "idle_seconds": 0.2}}}
