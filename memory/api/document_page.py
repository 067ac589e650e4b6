"""A page for people about all calls of the API: the OpenAPI document as HTML, without scripts or foreign hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

REFERENCE = "#/components/schemas/"
METHODS = ("get", "post", "put", "patch", "delete")


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
    if method not in METHODS:
        return ""
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
