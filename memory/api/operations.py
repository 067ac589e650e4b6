"""How an endpoint is declared: its name in the document, who may call it, and the errors that it can answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

from litestar.di import NamedDependency, Provide
from litestar.handlers import HTTPRouteHandler, delete, get, patch, post, put
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Operation, RequestBody
from litestar.params import HeaderParameter

from memory.api.identity import Access, Caller
from memory.api.refusals import ErrorBody
from memory.service.library import Library


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a user, for its endpoint. `caller`: whom the guard identified."""

    library: Library
    caller: Caller

    @property
    def user_id(self) -> str:
        return self.caller.user_id


TheLibrary: TypeAlias = NamedDependency[Library]
TheCall: TypeAlias = NamedDependency[Call]
PathId: TypeAlias = NamedDependency[str]
MemberId: TypeAlias = NamedDependency[str]
IdempotencyKey: TypeAlias = Annotated[
    str,
    HeaderParameter(
        name="Idempotency-Key",
        description="Any text of 1-256 bytes. Within a day, the same key and request get the same answer, and have no "
        "second effect; the same key with another request is 422.",
    ),
]

NOT_PARAMETERS = frozenset(
    (
        *("self", "library", "call", "data", "path_id", "member_id", "request"),
        *("idempotency_key", "if_match", "if_none_match"),
    )
)  # the others are of the query
ALIASES = {"words": "query"}  # parameters whose names are taken in Python or by the framework
OF_EVERY_CALL = (400, 401, 403, 413, 415, 500, 503)
ERRORS = {
    400: "A field or a parameter is unknown, missing or not what it must be.",
    401: "The caller is not identified.",
    403: "The caller may not do this.",
    404: "It does not exist, or belongs to another user.",
    409: "Another call changed it at the same time.",
    412: "It has changed: its ETag is not the one of `If-Match`.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "The idempotency key was used for another request.",
    500: "An error of the server.",
    503: "A part is down; `Retry-After` says when to try again.",
}

Verb: TypeAlias = type[get] | type[post] | type[put] | type[patch] | type[delete]


@dataclass(frozen=True, slots=True)
class Allowed:
    """`access`: which scope a service token needs. `of_projects`: the call stays within the projects of its caller;
    all others concern the whole user. `is_streamed`: the endpoint reads the body itself.
    """

    access: Access
    of_projects: bool = False
    is_streamed: bool = False


@dataclass
class WithOptionalBody(Operation):
    """In the document: the call may come without a body, although one is described."""

    def __post_init__(self) -> None:
        if isinstance(self.request_body, RequestBody):
            self.request_body.required = False


BY_TOKEN: list[dict[str, list[str]]] = [{"token": []}]
READS, WRITES, OPERATES = Allowed("read"), Allowed("write"), Allowed("operate")
READS_PROJECTS, WRITES_PROJECTS = Allowed("read", of_projects=True), Allowed("write", of_projects=True)


def operation(
    verb: Verb,
    path: str,
    name: str,
    *,
    allowed: Allowed,
    errors: tuple[int, ...] = (),
    also: Mapping[int, ResponseSpec] = MappingProxyType({}),
    **options: Any,  # noqa: ANN401 - of Litestar's decorator
) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """Declares an endpoint. `name`: its operation id; `errors`: besides those of every call; `also`: other answers."""

    def declared(endpoint: Callable[..., Any]) -> HTTPRouteHandler:
        provided: dict[str, Provide] = options.get("dependencies", {})
        functions = (endpoint, *(one.dependency for one in provided.values()))
        names = [name for function in functions for name in inspect.signature(function).parameters]
        parameters = [ALIASES.get(one, one) for one in names if one not in NOT_PARAMETERS and one not in provided]
        body = inspect.signature(endpoint).parameters.get("data")
        if body is not None and body.default is not inspect.Parameter.empty:
            options["operation_class"] = WithOptionalBody
        if allowed is OPERATES:
            options["security"] = BY_TOKEN
        refusals = {one: ResponseSpec(ErrorBody, False, ERRORS[one]) for one in (*OF_EVERY_CALL, *errors)}
        handler: HTTPRouteHandler = verb(
            path,
            # paths outside `/v1/memory`, which the API port alone serves, are second names of the same calls
            operation_id=lambda _, __, parts: name if parts[:2] == ["v1", "memory"] else f"{name}OnApiPort",
            summary=(inspect.getdoc(endpoint) or name).partition(". ")[0].rstrip("."),
            opt={"allowed": allowed, "parameters": parameters},
            responses=refusals | dict(also),
            **{"status_code": 200, **options},
        )(endpoint)
        return handler

    return declared
