"""The OpenAPI document, made from the types of the endpoints when it is asked for the first time; and the same as
a page for people, in HTML without scripts or foreign hosts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Litestar, MediaType, Request, Response, Router, get
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from memory.api.page_files import HEADERS
from memory.typed import from_json

PATHS = ("/openapi.json", "/v1/memory/openapi.json")  # the second also through the proxy
PAGES = {"/docs": "v1/memory/ui/docs.css", "/v1/memory/docs": "ui/docs.css"}  # with their style sheets
REFERENCE = "#/components/schemas/"
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
    return document_page(from_json(encoded_document(app), dict[str, Any]), style=style)


@get(list(PAGES), include_in_schema=False)
async def show_document_page(request: Request[Any, Any, Any]) -> Response[bytes]:
    """For people. It loads nothing but its style sheet, from us."""
    style = PAGES[request.url.path.rstrip("/")]
    if request.scope["raw_path"].endswith(b"/"):
        style = f"../{style}"
    headers = {name.decode(): value.decode() for name, value in HEADERS}
    page = await asyncio.to_thread(_page, request.app, style)
    return Response(page, media_type=MediaType.HTML, headers=headers)


# The page for people


def document_page(document: Mapping[str, Any], *, style: str) -> bytes:
    """`style`: the path of the style sheet, relative to the page."""
    title, about = document["info"]["title"], document["info"]["description"]
    head = f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}: API</title>'
    head += f'<link rel="stylesheet" href="{escape(style)}">'
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}</head><body><main>',
        f"<h1>{escape(title)} {escape(document['info']['version'])}: API</h1>",
        "".join(f"<p>{_prose(block)}</p>" for block in about.split("\n\n")),
        "<h2>Calls</h2>",
        *(_call(path, method, call) for path, calls in document["paths"].items() for method, call in calls.items()),
        "<h2>Types</h2><p>Fields with * are always there, or needed.</p>",
        *(_type(name, schema) for name, schema in document["components"]["schemas"].items()),
        "</main></body></html>",
    ]
    return "\n".join(parts).encode()


def _call(path: str, method: str, call: Mapping[str, Any]) -> str:
    heading = f"{method.upper()} {path}"
    parameters = [
        (one["name"], one["in"], _kind(one["schema"]), _prose(one.get("description", "")))
        for one in call.get("parameters", ())
    ]
    taken = [f"Takes {kind}." for kind in _contents(call.get("requestBody", {}))]
    answers = [
        f"<li><b>{escape(status)}</b> {_prose(one['description'])} {' or '.join(_contents(one))}</li>"
        for status, one in sorted(call["responses"].items())
    ]
    return "\n".join(
        [
            f'<details id="{escape(call["operationId"])}"><summary><code>{escape(heading)}</code></summary>',
            f"<p>{_prose(call.get('description', ''))}</p><p>{' '.join(taken)}</p>",
            _table(("parameter", "in", "takes", "meaning"), parameters),
            f"<ul>{''.join(answers)}</ul></details>",
        ]
    )


def _type(name: str, schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = [
        (f"{field}{' *' if field in needed else ''}", _kind(one), _prose(one.get("description", "")))
        for field, one in schema.get("properties", {}).items()
    ]
    of_itself = "" if rows else f"<p>Takes {_kind(schema)}.</p>"
    about = f"<p>{_prose(schema.get('description', ''))}</p>{of_itself}"
    return f'<h3 id="{escape(name)}">{escape(name)}</h3>{about}{_table(("field", "takes", "meaning"), rows)}'


def _contents(part: Mapping[str, Any]) -> Iterator[str]:
    for media_type, content in part.get("content", {}).items():
        yield f"{_kind(content.get('schema', {}))} as {escape(media_type)}"


def _kind(schema: Mapping[str, Any]) -> str:
    """HTML, in words."""
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(REFERENCE))
        return f'<a href="#{name}">{name}</a>'
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            return " or ".join(map(_kind, schema[choice]))
    if "enum" in schema:
        return "one of " + ", ".join(f"<code>{escape(json.dumps(one))}</code>" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    named = {"from": schema.get("minimum"), "to": schema.get("maximum")}
    bounds = [f" {word} {bound:g}" for word, bound in named.items() if bound is not None]
    return escape(str(schema.get("type", "anything"))) + "".join(bounds)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first cell of a row is a name, the others are HTML."""
    if not rows:
        return ""
    lines = ["".join(f"<th>{name}</th>" for name in head)]
    for name, *others in rows:
        lines.append(f"<td><code>{escape(name)}</code></td>" + "".join(f"<td>{one}</td>" for one in others))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _prose(text: str) -> str:
    """What stands between grave accents is code."""
    return "".join(
        f"<code>{escape(piece)}</code>" if number % 2 else escape(piece) for number, piece in enumerate(text.split("`"))
    )
