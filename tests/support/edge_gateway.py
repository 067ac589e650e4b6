"""Products behind an edge that knows who is signed in: a gateway in mode `header`, an issuer of tokens in `jwt`.

Who is signed in stands in a cookie at the gateway, in place of a session. Its calls go on from an address that Envoy
trusts; what the client says of itself in the identity header is dropped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from product import Product, running_product
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from token_issuer import AUDIENCE, ISSUER, TokenIssuer

from memory.model.token_claims import user_of_tenant

MODES = ("header", "jwt")
SESSION, IDENTITY = "session", "x-authz-user-id"
GATEWAY, ELSEWHERE = "127.0.0.2", "127.0.0.1"  # header mode believes the first alone
TENANT = "acme/eu"  # which might end elsewhere
VICTIM = "ren\u00e9"
VICTIM_ID = user_of_tenant(TENANT, VICTIM)  # in mode jwt
IMPORTER, OPERATOR = "mpt_a-token-of-the-importer-0123456789", "mpt_operator-of-the-edge-0123456789"
KEEPER, KEPT_USER = "mpt_a-token-of-the-keeper-0123456789", "ada.of.the.tools"  # whom that token may name
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
OF_ONE_CONNECTION = frozenset(("connection", "content-length", "host", "keep-alive", "transfer-encoding"))
DECODED = frozenset(("content-encoding", "content-length", "transfer-encoding", "connection"))


@dataclass(frozen=True)
class Edge:
    """`url`: where browsers go."""

    mode: str
    product: Product
    url: str
    issuer: TokenIssuer

    @property
    def source(self) -> str:
        """The address from which identified calls reach Envoy."""
        return GATEWAY if self.mode == "header" else ELSEWHERE

    def user_id(self, user: str) -> str:
        """As memory keeps it."""
        return user if self.mode == "header" else user_of_tenant(TENANT, user)

    def identified(self, user: str) -> dict[str, str]:
        """Headers of a call that reaches Envoy from `source`."""
        return {IDENTITY: user} if self.mode == "header" else bearer(self.issuer.token(sub=user, tenant=TENANT))

    def of_browser(self, user: str) -> dict[str, str]:
        """Headers of a call to `url`."""
        return {"cookie": f"{SESSION}={user}"} if self.mode == "header" else self.identified(user)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@contextmanager
def running_edge(mode: str, folder: Path, *, upstream: str) -> Iterator[Edge]:
    issuer, keys, config = TokenIssuer(), folder / "keys.json", folder / "settings.yaml"
    keys.write_text(issuer.key_set())
    tokens = {"issuer": ISSUER, "audiences": [AUDIENCE], "jwks_file": str(keys), "tenant_claim": "tenant"}
    of_mode: dict[str, Any] = {"trusted_peers": [f"{GATEWAY}/32"]} if mode == "header" else {"jwt": tokens}
    config.write_text(json.dumps({"identity": mode, "service_tokens": _programs(), **of_mode}))
    with ExitStack() as stack:
        product = stack.enter_context(running_product(folder / "data", upstream=upstream, config=config))
        url = stack.enter_context(_gateway(product.url)) if mode == "header" else product.url
        yield Edge(mode, product, url, issuer)


def _programs() -> list[dict[str, Any]]:
    """The service tokens that the product knows."""
    programs = (
        ("importer", IMPORTER, {"scopes": ["read", "write"], "users": [VICTIM_ID]}),
        ("operator", OPERATOR, {"scopes": ["operate"], "any_user": True}),
        ("keeper", KEEPER, {"scopes": ["read", "write"], "users": [KEPT_USER]}),
    )
    return [
        {"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest(), **allowed}
        for name, token, allowed in programs
    ]


@contextmanager
def _gateway(proxy: str) -> Iterator[str]:
    """Its URL. `proxy`: of Envoy."""

    async def forward(request: Request) -> Response:
        dropped = OF_ONE_CONNECTION | {IDENTITY, "cookie"}
        headers = {name: value for name, value in request.headers.items() if name not in dropped}
        user = request.cookies.get(SESSION)
        url = f"{proxy}{request.url.path}" + (f"?{request.url.query}" if request.url.query else "")
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(local_address=GATEWAY), timeout=60) as client:
            answer = await client.request(
                request.method,
                url,
                headers=headers | ({IDENTITY: user} if user else {}),
                content=await request.body(),
            )
        passed = {name: value for name, value in answer.headers.items() if name not in DECODED}
        return Response(answer.content, answer.status_code, passed)

    with served(Starlette(routes=[Route("/{path:path}", forward, methods=METHODS)])) as port:
        yield f"http://127.0.0.1:{port}"
