"""The OpenAPI document, made from the types of the endpoints when it is asked for the first time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Litestar, MediaType, Request, Response, Router, get
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from memory.api.document_page import document_page
from memory.api.page_files import HEADERS

PATHS = ("/openapi.json", "/v1/memory/openapi.json")  # the second also through the proxy
PAGES = {"/docs": "v1/memory/ui/docs.css", "/v1/memory/docs": "ui/docs.css"}  # with their style sheets
DESCRIPTION = """Long-term memory of users, across conversations.

A call concerns the memories of one user, who is identified in one of these ways: by the header `x-authz-user-id`,
which in mode `header` the proxy vouches for (in mode `development` anybody is believed, and `?user_id=` is enough); by
a JWT that the proxy verified (mode `jwt`); or by `?user_id=` beside a service token, which is for programs and has
scopes. Another user's memory does not exist: 404, never 403. Times are taken as ISO 8601 or Unix seconds, and given as
ISO 8601 in UTC. A body has at most 1 MiB. Errors are `{"error": {"code", "message"}}`.
"""


class _NoPages(Router):
    """Where the framework would serve pages of its own around the document."""

    def register(self, value: Any) -> list[Any]:  # noqa: ANN401 - any handler
        return []


def document_config() -> OpenAPIConfig:
    schemes: dict[str, Any] = {
        "user": SecurityScheme(
            type="apiKey",
            name="x-authz-user-id",
            security_scheme_in="header",
            description="The user who calls. Believed from anybody in mode `development`, else from the proxy alone.",
        ),
        "userInQuery": SecurityScheme(
            type="apiKey",
            name="user_id",
            security_scheme_in="query",
            description="The same in mode `development`, and beside a service token. Elsewhere it must be the caller.",
        ),
        "token": SecurityScheme(
            type="http",
            scheme="bearer",
            description="A JWT, which the proxy verifies in mode `jwt`; or a service token `mpt_…` of a program, "
            "with the scopes `read` and `write`, beside `?user_id=`.",
        ),
    }
    return OpenAPIConfig(
        title="memproxy",
        version=version("memproxy"),
        description=DESCRIPTION,
        use_handler_docstrings=True,
        components=Components(security_schemes=schemes),
        security=[{"user": []}, {"userInQuery": []}, {"token": []}, {"token": [], "userInQuery": []}],
        render_plugins=[JsonRenderPlugin()],
        openapi_router=_NoPages("/openapi", route_handlers=[]),
    )


@cache
def encoded_document(app: Litestar) -> bytes:
    return msgspec.json.encode(closed(app.openapi_schema.to_schema()))


def closed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with `additionalProperties: false` in all types of request bodies: unknown fields are refused."""
    types = document["components"]["schemas"]
    bodies = [
        one["requestBody"] for path in document["paths"].values() for one in path.values() if "requestBody" in one
    ]
    waiting, seen = list(_references(bodies)), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting += _references(types[name])
        if "properties" in types[name]:
            types[name]["additionalProperties"] = False
    return document


def _references(part: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """The names of the types that this part of the document refers to."""
    if isinstance(part, Mapping):
        if isinstance(name := part.get("$ref"), str):
            yield name.rpartition("/")[2]
        part = list(part.values())
    if isinstance(part, list | tuple):
        for one in part:
            yield from _references(one)


@get(list(PATHS), include_in_schema=False)
async def show_document(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Made in a thread: it takes as long as some hundred calls."""
    return Response(await asyncio.to_thread(encoded_document, request.app), media_type=MediaType.JSON)


@cache
def _page(app: Litestar, style: str) -> bytes:
    return document_page(msgspec.json.decode(encoded_document(app)), style=style)


@get(list(PAGES), include_in_schema=False)
async def show_document_page(request: Request[Any, Any, Any]) -> Response[bytes]:
    """For people. It loads nothing but its style sheet, from us."""
    style = PAGES[request.url.path.rstrip("/")]
    if request.scope["raw_path"].endswith(b"/"):
        style = f"../{style}"
    headers = {name.decode(): value.decode() for name, value in HEADERS}
    page = await asyncio.to_thread(_page, request.app, style)
    return Response(page, media_type=MediaType.HTML, headers=headers)
