"""How commands declare their options: shared ones as values, one field per option.

Light to import: every process of the product starts through the command line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_args, get_type_hints

from typer import Option, Typer
from typer.models import ArgumentInfo

if TYPE_CHECKING:
    import httpx

_Function = TypeVar("_Function", bound=Callable[..., None])

THE_PRODUCT, PARTS, MEMORIES, OPERATION = "The product", "Parts that run alone", "Memories", "Operation"  # of the help
STYLE: dict[str, Any] = {
    "rich_markup_mode": "markdown",
    "add_completion": False,
    "pretty_exceptions_enable": False,  # they show local variables, which hold what users said
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

PAGE_MEMORIES = 100  # the most that the API gives at once

ConfigOption: TypeAlias = Annotated[
    Path | None, Option("--config", help="YAML file with settings. None is read unless named.")
]
JsonOption: TypeAlias = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
ApiOption: TypeAlias = Annotated[
    str | None, Option("--api", help="Base URL of the REST API. [default: http://127.0.0.1:API_PORT]")
]
YesOption: TypeAlias = Annotated[bool, Option("--yes", help="Do not ask.")]


class MemoryTypeName(StrEnum):
    """The types of memories; `memory.model.MEMORY_TYPES`, which imports numpy."""

    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    EPISODIC = "episodic"
    REFLECTIVE = "reflective"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOptions:
    """The options of every tool that calls the REST API for one user."""

    user: Annotated[str, Option(help="Whose memories.")]
    api: ApiOption = None
    config: ConfigOption = None
    as_json: JsonOption = False

    def client(self) -> httpx.Client:
        from memory.cli.api_client import api_client

        return api_client(self.config, self.api, self.user)

    def asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """What one call answers. Raises the API's error."""
        from memory.cli.api_client import answer_of

        with self.client() as client:
            return answer_of(client.request(method, path, json=body))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOptions:
    """Which claims memories were made of: whole fields, ignoring case, white space and punctuation."""

    subject: Annotated[str, Option(help="Only memories about this one: user, partner, pet …")] = ""
    name: Annotated[str, Option(help="Only memories about whoever is called so.")] = ""
    attribute: Annotated[str, Option(help="Only memories of this attribute: home, employer, diet …")] = ""
    value: Annotated[str, Option(help="Only memories with this value, such as a city.")] = ""

    def given(self) -> dict[str, str]:
        return given(subject=self.subject, name=self.name, attribute=self.attribute, value=self.value)


def given(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - options, by name
    """Those that are not empty."""
    return {name: value for name, value in fields.items() if value}


def group(meaning: str) -> Typer:
    """A command that only has commands below it."""
    made = Typer(help=meaning, no_args_is_help=True, **STYLE)
    made.callback()(lambda: None)  # keeps a group a group, however few commands it has
    return made


def command(app: Typer, name: str | None = None, *, panel: str | None = None) -> Callable[[_Function], _Function]:
    """Make the function a command of `app`. Where a parameter is a value (a dataclass), each field is an option."""

    def register(function: _Function) -> _Function:
        app.command(name, rich_help_panel=panel)(flattened(function))
        return function

    return register


def flattened(function: Callable[..., None]) -> Callable[..., None]:
    """The same function with one parameter for each field of its values, all by name."""
    given = inspect.signature(function, eval_str=True).parameters.values()
    values: dict[str, Any] = {one.name: one.annotation for one in given if is_dataclass(one.annotation)}
    parameters = [
        field
        for one in given
        for field in (_fields(values[one.name]) if one.name in values else [one.replace(kind=one.KEYWORD_ONLY)])
    ]

    @wraps(function)
    def with_fields(**options: Any) -> None:  # noqa: ANN401 - options, by name
        made = {
            name: kind(**{one.name: options.pop(one.name) for one in fields(kind)}) for name, kind in values.items()
        }
        function(**options, **made)

    return _declared(with_fields, parameters)


def with_parameters(further: Sequence[inspect.Parameter]) -> Callable[[_Function], _Function]:
    """Replace the `**` of the function by these parameters."""

    def declare(function: _Function) -> _Function:
        own = inspect.signature(function, eval_str=True).parameters.values()
        return _declared(function, [*(one for one in own if one.kind is not one.VAR_KEYWORD), *further])

    return declare


def _declared(function: _Function, parameters: Sequence[inspect.Parameter]) -> _Function:
    """Typer reads signature and annotations. Arguments are named as help texts name them, in capitals."""
    for one in parameters:
        for argument in get_args(one.annotation)[1:]:
            if isinstance(argument, ArgumentInfo):
                argument.metavar = one.name.upper()
    function.__dict__["__signature__"] = inspect.Signature(parameters)
    function.__annotations__ = {one.name: one.annotation for one in parameters}
    return function


def _fields(kind: Any) -> list[inspect.Parameter]:  # noqa: ANN401 - a class of values
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=hints[one.name],
        )
        for one in fields(kind)
    ]
