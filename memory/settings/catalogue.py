"""Descriptions of all settings, for the command line's help, the documents, and error messages."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memory.settings.identity import ServiceTokenSettings
from memory.settings.recall import UpstreamSignal
from memory.settings.retention import CategoryRetention

ENVIRONMENT_PREFIX = "MEMPROXY_"
SECRET = Meta(extra={"is_secret": True})  # in the annotation of a setting that only the environment may hold


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """One setting: dotted path in the file, environment variable, accepted values, default, meaning, and its type."""

    path: str
    environment: str
    type: str
    default: object
    meaning: str
    is_secret: bool
    annotation: Any


def without_secrets(settings: msgspec.Struct) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.to_builtins(settings)
    for doc in docs_of(type(settings)):
        if doc.is_secret:
            *sections, name = doc.path.split(".")
            del reduce(getitem, sections, tree)[name]
    return tree


def docs_of(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[SettingDoc]:
    """All settings with descriptions, in the order of the file."""
    hints = typing.get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        annotation, path = hints[field.name], prefix + field.name
        if is_section(annotation):
            yield from docs_of(annotation, f"{path}.")
            continue
        *marks, meaning = annotation.__metadata__
        yield SettingDoc(
            path=path,
            environment=ENVIRONMENT_PREFIX + path.replace(".", "_").upper(),
            type=_expected(annotation),
            default=field.default,
            meaning=meaning,
            is_secret=SECRET in marks,
            annotation=annotation,
        )


def is_section(annotation: Any) -> bool:  # noqa: ANN401 - a type annotation may be anything
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def _expected(annotation: Any) -> str:  # noqa: ANN401 - likewise
    """The accepted values, in words."""
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "nothing"}
    if annotation in words:
        return words[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        inner, bounds = (
            _expected(arguments[0]),
            [one for one in arguments[1:] if isinstance(one, Meta) and one.le is not None],
        )
        if not bounds:
            return inner
        (meta,) = bounds
        return f"{inner} {f'from {meta.ge}' if meta.gt is None else f'above {meta.gt}'} to {meta.le}"
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple:
        element = getattr(arguments[0], "__origin__", arguments[0])  # without what is annotated
        return {
            str: "a list of text",
            UpstreamSignal: "a list of signals",
            CategoryRetention: "a list of categories",
            ServiceTokenSettings: "a list of tokens",
        }.get(element, "a list of models")
    return " or ".join(_expected(argument) for argument in arguments)
