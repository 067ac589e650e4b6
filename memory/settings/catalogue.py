"""Descriptions of all settings, for the command line's help, the documents, and error messages."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memory.settings.identity import ServiceTokenSettings
from memory.settings.retention import CategoryRetention
from memory.settings.switches import UpstreamSignal

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
        for mark in arguments[1:]:
            if isinstance(mark, Meta) and mark.le is not None:
                least = f"from {mark.ge}" if mark.gt is None else f"above {mark.gt}"
                return f"{_expected(arguments[0])} {least} to {mark.le}"
        return _expected(arguments[0])
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


_INSTEAD_OF_REDIS = (
    "the turn log is no longer kept on Redis; write database_url: postgresql://HOST:PORT/DATABASE, and memory.database "
    "for role and password; `memproxy export` of the release before and `memproxy import` move what was kept"
)
_OF_REDIS = ("redis_url", "redis")  # keys of earlier releases


def unknown(key: str, known: Iterable[str], source: str) -> str:
    """The nearest known key, or all of them."""
    if key.rpartition(".")[2] in _OF_REDIS or "_REDIS" in key:
        return f"{key} ({source}): {_INSTEAD_OF_REDIS}"
    names = list(known)
    nearest = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
    advice = f"did you mean {nearest[0]}?" if nearest else f"known here: {', '.join(names)}"
    return f"unknown setting {key} ({source}): {advice}"
