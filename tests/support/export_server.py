"""What `memproxy export` and `import` need of the REST API, and no more: it checks each call against the contract.

`GET /v1/memory/export` streams JSON Lines, the first of which is a header. `POST /v1/memory/import` takes a header, at
most 200 further lines and less than 1 MiB, and imports no id twice.
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
HEADER = b'{"kind":"memproxy-export","user_id":"ann","version":1}\n'
BYTES_MAX = 1 << 20
NOTHING_ELSE: dict[str, Any] = {"profiles": 0, "turns": 0, "messages": 0, "raw_words": 0, "unread": {}}


class BrokenOff(ConnectionError):
    """The server dies in the middle of an answer."""


@dataclass
class ExportServer:
    """The lines of each user, without the header. `calls`: their kinds, users, counts of lines, and the number of the
    first line that imports name. `lines_until_fault`: after so many lines of an export or an import it fails, once."""

    stored: dict[str, list[bytes]] = field(default_factory=dict)
    calls: list[tuple[str, str, int, int]] = field(default_factory=list)
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
        self.calls.append(("export", user, 0, 0))

        async def lines() -> AsyncIterator[bytes]:
            yield HEADER
            for number, line in enumerate(self.stored.get(user, ())):
                if number == self.lines_until_fault:
                    raise BrokenOff
                yield line

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def _import(self, request: Request) -> Response:
        user, body = request.headers["x-authz-user-id"], await request.body()
        header, *sent = body.splitlines(keepends=True)
        lines = [line for line in sent if line.strip()]
        self.calls.append(("import", user, len(sent), int(request.query_params.get("first_line", "2"))))
        if header != HEADER:
            return _refusal(400, "line 1 is not one of an export")
        if request.headers["content-type"] != "application/x-ndjson" or not body.endswith(b"\n"):
            return _refusal(415, "send JSON Lines")
        if len(sent) > LINES_MAX or len(body) >= BYTES_MAX:
            return _refusal(413, "too much for one call")
        if self.lines_until_fault is not None and len(self.stored.get(user, ())) >= self.lines_until_fault:
            self.lines_until_fault = None
            return _refusal(503, "the store is down")
        held = self.stored.setdefault(user, [])
        known = {_id_of(line) for line in held}
        new = [line for line in lines if _id_of(line) not in known]
        held += new
        present = len(lines) - len(new)
        return JSONResponse({"stored": len(new), "present": present, "forgotten": 0, **NOTHING_ELSE})


def _id_of(line: bytes) -> Any:
    return json.loads(line)["memory"]["id"]


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"error": {"code": "refused", "message": message}}, status_code=status)
