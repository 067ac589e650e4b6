"""A gateway as stands before memproxy in identity mode `header`: it knows who is signed in, and says so to Envoy.

Who is signed in stands in a cookie here, in place of a session. Calls go on from an address that Envoy trusts; what
the client says of itself in the identity header is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

SESSION, IDENTITY = "session", "x-authz-user-id"
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
OF_ONE_CONNECTION = frozenset(("connection", "content-length", "host", "keep-alive", "transfer-encoding"))
DECODED = frozenset(("content-encoding", "content-length", "transfer-encoding", "connection"))


@contextmanager
def gateway(proxy: str, *, source: str) -> Iterator[str]:
    """Its URL. `proxy`: of Envoy; `source`: the address from which it calls."""

    async def forward(request: Request) -> Response:
        dropped = OF_ONE_CONNECTION | {IDENTITY, "cookie"}
        headers = {name: value for name, value in request.headers.items() if name not in dropped}
        user = request.cookies.get(SESSION)
        url = f"{proxy}{request.url.path}" + (f"?{request.url.query}" if request.url.query else "")
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(local_address=source), timeout=60) as client:
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
