"""The REST API over a library of a test, called without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from library_parts import Parts
from prometheus_client import CollectorRegistry

from memory.api.callers import USERS_ONLY
from memory.api.rest import create_app
from memory.runtime.metrics import Metrics

ANN = {"x-authz-user-id": "ann"}
BOB = {"x-authz-user-id": "bob"}
SECRET = "s3cret"


@asynccontextmanager
async def api_of(
    parts: Parts, *, identity_mode: str = "development", **options: Any
) -> AsyncIterator[httpx.AsyncClient]:
    metrics = options.pop("metrics", None) or Metrics(CollectorRegistry())
    app = create_app(
        parts.library,
        identity_mode=identity_mode,
        edge_secret=options.pop("edge_secret", SECRET),
        metrics=metrics,
        rules=options.pop("rules", USERS_ONLY),
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", **options) as client:
        yield client


def assert_refused(answer: httpx.Response, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(answer.json()) == {"error"}
    assert set(error) == {"code", "message"}
    for word in words:
        assert word in error["code"] + " " + error["message"]


async def add_one(api: httpx.AsyncClient, content: str = "I like tea", **fields: Any) -> str:
    answer = await api.post("/v1/memory", json={"memories": [{"content": content, **fields}]})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["ids"][0])
