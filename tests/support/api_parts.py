"""The REST API over a library of a test, as a process builds it, and called without a socket."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from typing import Any

import httpx
from library_parts import Parts
from prometheus_client import CollectorRegistry

from memory.api.asgi import AsgiApp
from memory.api.callers import USERS_ONLY, CallerRules, Callers
from memory.api.identity import ServiceToken
from memory.api.rest import create_app
from memory.model import Message, Receipt, Scope, Turn, TurnStatus
from memory.processes.composition import SYSTEM_CLOCK
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import NO_TRACER, Telemetry, Tracer
from memory.service.library import Library

ANN = {"x-authz-user-id": "ann"}
BOB = {"x-authz-user-id": "bob"}
SECRET = "s3cret"
ODD = "s 1/ü?#%2F"  # a session id as a client may choose it


def service_token(name: str, token: str, *scopes: Any, users: set[str] | None = None) -> ServiceToken:
    named = frozenset(users) if users is not None else None
    return ServiceToken(name, hashlib.sha256(token.encode()).digest(), frozenset(scopes), named)


def claims(**said: Any) -> dict[str, str]:
    payload = base64.urlsafe_b64encode(json.dumps({"tenant": "acme", **said}).encode()).rstrip(b"=").decode()
    return {"x-memory-token-claims": payload, "x-memory-edge-secret": SECRET}


def with_token(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def app_of(
    library: Library,
    identity_mode: str = "development",
    *,
    metrics: Metrics | None = None,
    tracer: Tracer = NO_TRACER,
    edge_secret: str = SECRET,
    rules: CallerRules = USERS_ONLY,
    callers: Callers | None = None,
    **options: Any,
) -> AsgiApp:
    """`callers`: in the place of those of this mode, secret and rules; `options`: further ones of `create_app`."""
    telemetry = Telemetry(SYSTEM_CLOCK, metrics or Metrics(CollectorRegistry()), tracer=tracer)
    callers = callers or Callers(
        identity_mode=identity_mode, edge_secret=edge_secret, metrics=telemetry.metrics, rules=rules
    )
    return create_app(library, callers, telemetry=telemetry, **options)


def client_of(app: AsgiApp, *, base_url: str = "http://localhost", **options: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=base_url, **options)


def api_of(
    parts: Parts, *, identity_mode: str = "development", headers: Any = None, **options: Any
) -> httpx.AsyncClient:
    """To be opened. `options`: of `app_of`."""
    return client_of(app_of(parts.library, identity_mode, **options), headers=headers)


def assert_refused(answer: httpx.Response, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(answer.json()) == {"error"}
    assert set(error) == {"code", "message"}
    for word in words:
        assert word in error["code"] + " " + error["message"]


def counted(registry: CollectorRegistry, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """By these labels, whatever is not zero."""
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {
        tuple(one.labels[label] for label in labels): one.value for one in samples if one.name == name and one.value
    }


async def add_one(api: httpx.AsyncClient, content: str = "I like tea", **fields: Any) -> str:
    answer = await api.post("/v1/memory", json={"memories": [{"content": content, **fields}]})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["ids"][0])


async def kept(parts: Parts, receipt: Receipt) -> None:
    """Return once it can be read."""
    parts.receipts.keep(receipt)
    while await parts.receipts.get(receipt.user_id, receipt.id) is None:
        await asyncio.sleep(0)


async def tell(
    parts: Parts, turn_id: str, text: str, *, user: str = "ann", session: str = "s1", agent: str = "", receipt: str = ""
) -> None:
    scope = Scope(user, session_id=session, agent_id=agent)
    turn = Turn(turn_id, scope, parts.now, (Message("user", text),), receipt_id=receipt, trace_id=f"trace-{turn_id}")
    await parts.turn_log.open(turn)
    await parts.turn_log.finish(
        turn_id, status=TurnStatus.CLOSED, answer=f"answer to {turn_id}", answered_at=parts.now + 0.5
    )


async def learn_all(parts: Parts) -> None:
    while (lease := await parts.lease()) is not None:
        await parts.learn(lease)
