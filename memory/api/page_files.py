"""Serves the web page of memories: a few files that are part of the package, and the identity mode that it runs in.

The files are the same for everybody and hold nothing of a user, so that they need no identity; the page calls REST
with it. They may load nothing but each other, run nothing inline, and stand in no frame.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from memory.api.asgi import AsgiApp, AsgiReceive, AsgiScope, AsgiSend, send_answer

BASE = "/v1/memory/ui"
FILES = Path(__file__).parent / "pages"
INDEX = "index.html"
MODE = "identity.json"
TEMPLATE = f"{BASE}/{{file}}"  # what metrics call all of them
JSON = "application/json; charset=utf-8"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": JSON,
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),  # asked for again each time, and answered by 304: a new version is seen at once
)


@dataclass(frozen=True, slots=True)
class PageFile:
    content: bytes
    media_type: str

    @property
    def etag(self) -> bytes:
        return b'"' + hashlib.sha256(self.content).hexdigest()[:32].encode() + b'"'


@cache
def page_files() -> dict[str, PageFile]:
    """All files by name."""
    return {
        path.name: PageFile(path.read_bytes(), TYPES[path.suffix]) for path in FILES.iterdir() if path.suffix in TYPES
    }


class PageFiles:
    """An application around another, which gets all other paths."""

    def __init__(self, app: AsgiApp, *, identity_mode: str) -> None:
        self._app = app
        self._mode = PageFile(msgspec.json.encode({"mode": identity_mode}), JSON)

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if path != BASE and not path.startswith(BASE + "/"):
            await self._app(scope, receive, send)
            return
        name = path.removeprefix(BASE).removeprefix("/") or INDEX
        found = self._mode if name == MODE else page_files().get(name)
        if scope["method"] != "GET" or found is None:
            await self._app(scope, receive, send)  # which refuses it as any other
            return
        scope["path_template"] = TEMPLATE
        if path == BASE:  # relative, since a proxy may have put something before our paths
            await send_answer(send, 308, [(b"location", b"ui/")])
            return
        await _send_file(scope, send, found)


async def _send_file(scope: AsgiScope, send: AsgiSend, found: PageFile) -> None:
    validators = [value for name, value in scope["headers"] if name == b"if-none-match"]
    headers = [*HEADERS, (b"etag", found.etag)]
    if found.etag in [one.strip().removeprefix(b"W/") for value in validators for one in value.split(b",")]:
        await send_answer(send, 304, headers)
        return
    await send_answer(send, 200, [*headers, (b"content-type", found.media_type.encode())], found.content)
