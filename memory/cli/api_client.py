"""Shared by all commands that call the REST API: the client, and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from memory.cli.options import PAGE_MEMORIES
from memory.errors import BadInput, BadSetting, MemproxyError, NotFound, Unavailable
from memory.model import Scope
from memory.settings import Settings
from memory.settings.loader import from_process

UNAUTHENTICATED = 401
HOW_TO_IDENTIFY = "set MEMPROXY_TOKEN to a service token that service_tokens allows; `memproxy token` makes one"
API_SECONDS_MAX = 30.0  # per call; deleting thousands of memories takes a while


def api_client(config: Path | None, url: str | None, user: str) -> httpx.Client:
    """Raises `BadSetting` for what is no URL."""
    settings = from_process(config, {})
    try:
        return httpx.Client(
            base_url=url or f"http://127.0.0.1:{settings.api_port}",
            headers=_caller_headers(settings, user),
            timeout=API_SECONDS_MAX,
            transport=_Transport(),
            trust_env=False,
        )
    except httpx.InvalidURL as error:
        raise BadSetting(f"--api: expected a URL such as http://127.0.0.1:8081, got {url!r:.80}: {error}") from error


def _caller_headers(settings: Settings, user: str) -> list[tuple[bytes, bytes]]:
    """Raises `BadInput` for an id that no header can carry."""
    headers = [(b"x-authz-user-id", Scope(user).user_id.encode())]
    if settings.token:
        headers.append((b"authorization", b"Bearer " + settings.token.encode()))
    elif settings.edge_secret:  # of an API that runs alone, and was given the same one
        headers.append((b"x-memory-edge-secret", settings.edge_secret.encode()))
    return headers


class _Transport(httpx.HTTPTransport):
    """Reports an unreachable API as `Unavailable`."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return super().handle_request(request)
        except httpx.TransportError as error:
            where = f"{request.url.scheme}://{request.url.netloc.decode()}"
            raise Unavailable("the REST API", f"{error} at {where}; is it running? Name another with --api") from error


def answer_of(response: httpx.Response) -> dict[str, Any]:
    """The JSON of a successful answer; raises the API's error otherwise."""
    try:
        content: dict[str, Any] = response.json()
        if response.is_success:
            return content
        code, message = str(content["error"]["code"]), str(content["error"]["message"])
    except (ValueError, KeyError, TypeError):
        raise Unavailable("the REST API", f"what answers there is not it (HTTP {response.status_code})") from None
    if response.status_code >= 500:
        raise Unavailable("the REST API", message)
    if response.status_code == UNAUTHENTICATED:
        message = f"{message}; {HOW_TO_IDENTIFY}"
    raise NotFound(message) if response.status_code == 404 else BadInput(message, code=code)


def pages_of(
    client: httpx.Client,
    path: str,
    name: str,
    parameters: dict[str, str],
    *,
    headers: Any = None,  # noqa: ANN401 - httpx's own type is private
) -> Iterator[dict[str, Any]]:
    """All pages of the list `name`; at least one."""
    cursor: str | None = ""
    while cursor is not None:
        page = answer_of(client.get(path, params={**parameters, "cursor": cursor}, headers=headers))
        assert name in page, "the API answers with this list"
        yield page
        cursor = page["next_cursor"]


def listed_memories(client: httpx.Client, path: str, parameters: dict[str, str], *, limit: int) -> list[dict[str, Any]]:
    """The first of the list, at most `limit`; facts of one sentence next to one another, of any pages."""
    from memory.model.memories import together

    pages = pages_of(client, path, "memories", parameters | {"limit": str(min(limit, PAGE_MEMORIES))})
    found = list(islice((memory for one in pages for memory in one["memories"]), limit))
    return together(found, lambda memory: memory["sentence_id"])


def stopped_by(error: MemproxyError, imported: int) -> MemproxyError:
    """What to raise when a call of an import fails: the error itself, if nothing is stored yet."""
    if not imported:
        return error
    advice = "Run the same command again to go on: nothing is stored twice"
    return MemproxyError(f"the import stopped after {imported} memories: {error}. {advice}")


def quoted(memory_id: str) -> str:
    """As one path segment, whatever it contains."""
    return quote(memory_id, safe="", errors="surrogateescape").replace(".", "%2E")
