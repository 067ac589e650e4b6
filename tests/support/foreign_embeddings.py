"""A small server of `/v1/embeddings` that is not ours: floats only, of any length, in any order, and at times at odds.

Its vectors follow from the text alone, so two calls agree; tests set `mood` to make it misbehave.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from aiohttp import web
from served_app import served_here

DIMENSION = 384

Answer = dict[str, Any]
Mood = Callable[[Answer], Answer]


class ForeignEmbeddings:
    """`texts` holds what was asked for; `status` and `mood` change the answer; clear `may_answer` to let it hang."""

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.dimension = dimension
        self.texts: list[str] = []
        self.calls: list[dict[str, Any]] = []
        self.status = 200
        self.mood: Mood = lambda answer: answer
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.texts += asked["input"]
        self.calls.append(asked)
        await self.may_answer.wait()
        data = [
            {"index": i, "embedding": vector_of(text, self.dimension).tolist()} for i, text in enumerate(asked["input"])
        ]
        said = self.mood({"object": "list", "data": data[::-1]})
        text = str(said["as it is"]) if "as it is" in said else json.dumps(said)
        return web.json_response(text=text, status=self.status)


def vector_of(text: str, dimension: int = DIMENSION) -> np.ndarray[Any, np.dtype[np.float64]]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return np.random.default_rng(seed).standard_normal(dimension) * 7.0


@asynccontextmanager
async def running_foreign_embeddings(port: int = 0, *, dimension: int = DIMENSION) -> AsyncIterator[ForeignEmbeddings]:
    server = ForeignEmbeddings(dimension)
    app = web.Application()
    app.router.add_post("/v1/embeddings", server.answer)
    async with served_here(app, port) as server.url:
        yield server
        server.may_answer.set()
