"""The REST reference, from the OpenAPI document that the API serves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from prometheus_client import CollectorRegistry

from memory.api.callers import Callers
from memory.api.document import encoded_document
from memory.api.rest import framework_app
from memory.runtime.metrics import Metrics
from memory.service.library import Library
from reference_pages.markdown import code, document, paragraphs, prose, table
from reference_pages.notes import notes

SHORT_NAME = "OnApiPort"  # ends the ids of calls that have a shorter path on the API port
REFERENCE = "#/components/schemas/"
METHODS = ("get", "post", "put", "patch", "delete")
FIRST_ERROR = 400
LAST = ("health",)
INTRODUCTION = """A running API serves the document that this page is made of, at `/openapi.json`.
[REST](../api.md#rest) says what holds for all calls."""


class Call(NamedTuple):
    """One operation of the document."""

    method: str
    path: str
    described: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.described["operationId"])

    @property
    def title(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def tag(self) -> str:
        return str(self.described["tags"][0])


def openapi_document() -> dict[str, Any]:
    """As served. Describing the calls takes no library: that is only given to those that are made."""
    callers = Callers(identity_mode="development", edge_secret="", metrics=Metrics(CollectorRegistry()))
    made: dict[str, Any] = json.loads(encoded_document(framework_app(cast(Library, None), callers)))
    return made


def calls_of(openapi: Mapping[str, Any]) -> list[Call]:
    return [
        Call(method, path, described)
        for path, operations in openapi["paths"].items()
        for method, described in operations.items()
        if method in METHODS
    ]


def page(openapi: Mapping[str, Any]) -> str:
    calls = calls_of(openapi)
    shorter = {call.name.removesuffix(SHORT_NAME): call.path for call in calls if call.name.endswith(SHORT_NAME)}
    listed = [call for call in calls if not call.name.endswith(SHORT_NAME)]
    said = notes("rest.md", {call.title for call in listed})
    blocks = ["# REST reference", INTRODUCTION, paragraphs(openapi["info"]["description"]), _errors(listed)]
    for tag in sorted({call.tag: None for call in listed}, key=LAST.count):
        blocks.append(f"## {tag.capitalize()}")
        for call in listed:
            if call.tag == tag:
                blocks += _call(call, shorter.get(call.name, ""), said.get(call.title, ""))
    blocks += ["## Types", "Fields with * are always there, or needed."]
    for name, schema in openapi["components"]["schemas"].items():
        blocks += [f"### {name}", *_schema(schema)]
    return document(*blocks)


def _errors(calls: list[Call]) -> str:
    meanings: dict[str, dict[str, None]] = {}
    for call in calls:
        for status, answer in call.described["responses"].items():
            if int(status) >= FIRST_ERROR:
                meanings.setdefault(status, {})[answer["description"]] = None
    return table(("error", "meaning"), [(status, prose(" ".join(meanings[status]))) for status in sorted(meanings)])


def _call(call: Call, short_path: str, note: str) -> Iterator[str]:
    described = call.described
    yield f"### {code(call.title)}"
    yield paragraphs(described["description"])
    yield note
    if short_path:
        yield f"On the API port also {code(short_path)}."
    if body := described.get("requestBody"):
        needed = "" if body.get("required") else ", optional"
        yield f"Body{needed}: {_contents(body['content'])}."
    parameters = sorted(described.get("parameters", ()), key=lambda one: one["in"])
    rows = [
        (code(one["name"]), one["in"], kind_of(one["schema"]), prose(one.get("description", ""))) for one in parameters
    ]
    yield table(("parameter", "in", "takes", "meaning"), rows)
    answers = {status: answer for status, answer in described["responses"].items() if int(status) < FIRST_ERROR}
    given = [f"{status}, {_contents(answer['content'])}" for status, answer in answers.items() if answer.get("content")]
    errors = sorted(status for status in described["responses"] if status not in answers)
    yield f"Answers {' or '.join(given) or ', '.join(answers)}; errors: {', '.join(errors) or 'none'}."


def _contents(content: Mapping[str, Any]) -> str:
    return " or ".join(f"{kind_of(one.get('schema', {}))} as {code(kind)}" for kind, one in content.items())


def _schema(schema: Mapping[str, Any]) -> Iterator[str]:
    yield paragraphs(schema.get("description", ""))
    if "properties" not in schema:
        yield f"Takes {kind_of(schema)}."
        return
    needed = set(schema.get("required", ()))
    rows = [
        (f"{code(name)}{' *' if name in needed else ''}", kind_of(one), prose(_meaning(one)))
        for name, one in schema["properties"].items()
    ]
    yield table(("field", "type", "meaning"), rows) or "No fields."


def _meaning(schema: Mapping[str, Any]) -> str:
    example = f" Example: `{schema['examples'][0]}`." if schema.get("examples") else ""
    return f"{schema.get('description', '')}{example}".strip()


def kind_of(schema: Mapping[str, Any]) -> str:
    """In words, with bounds and default."""
    bounds = " ".join(
        f"{word} {schema[key]:g}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema
    )
    default = schema.get("default")
    shown = f"default {code(json.dumps(default))}" if default not in (None, "") and "$ref" not in schema else ""
    return ", ".join(part for part in (f"{_kind(schema)} {bounds}".strip(), shown) if part)


def _kind(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REFERENCE)
        return f"[{name}](#{name.lower()})"
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            return " or ".join(kind_of(one) for one in schema[choice])
    if "enum" in schema:
        return "one of " + ", ".join("null" if one is None else code(str(one)) for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))
