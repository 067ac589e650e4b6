"""What `memproxy export` and `import` need of the REST API, and no more: it checks each call against the contract.

`GET /v1/memory/export` streams JSON Lines. `POST /v1/memory/import` takes at most 200 lines and less than 1 MiB, and
imports no id twice.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

LINES_MAX = 200
BYTES_MAX = 1 << 20


class BrokenOff(ConnectionError):
    """The server dies in the middle of an answer."""


@dataclass
class ExportServer:
    """The lines of each user. `lines_until_fault`: after so many lines of an export or an import it fails, once."""

    stored: dict[str, list[bytes]] = field(default_factory=dict)
    calls: list[tuple[str, str, int]] = field(default_factory=list)
    lines_until_fault: int | None = None

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/memory/export", self._export, methods=["GET"]),
                Route("/v1/memory/import", self._import, methods=["POST"]),
            ]
        )

    async def _export(self, request: Request) -> Response:
        user = request.headers["x-authz-user-id"]
        self.calls.append(("export", user, 0))

        async def lines() -> AsyncIterator[bytes]:
            for number, line in enumerate(self.stored.get(user, ())):
                if number == self.lines_until_fault:
                    raise BrokenOff
                yield line

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def _import(self, request: Request) -> Response:
        user, body = request.headers["x-authz-user-id"], await request.body()
        lines = body.splitlines(keepends=True)
        self.calls.append(("import", user, len(lines)))
        if request.headers["content-type"] != "application/x-ndjson" or not body.endswith(b"\n"):
            return _refusal(415, "send JSON Lines")
        if len(lines) > LINES_MAX or len(body) >= BYTES_MAX:
            return _refusal(413, "too much for one call")
        if self.lines_until_fault is not None and len(self.stored.get(user, ())) >= self.lines_until_fault:
            self.lines_until_fault = None
            return _refusal(503, "the store is down")
        held = self.stored.setdefault(user, [])
        known = {_id_of(line) for line in held}
        new = [line for line in lines if _id_of(line) not in known]
        held += new
        return JSONResponse({"stored": len(new), "present": len(lines) - len(new), "forgotten": 0})


def _id_of(line: bytes) -> Any:
    return json.loads(line)["id"]


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"error": {"code": "refused", "message": message}}, status_code=status)
