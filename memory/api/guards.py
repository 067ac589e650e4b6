"""What is checked of every call before its endpoint runs: parameters, caller, bounds of a token, type of the body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.exceptions import NotFoundException
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from memory.api.bodies import unknown_name
from memory.api.browsers import refuse_other_types
from memory.api.callers import Callers
from memory.api.identity import Caller
from memory.api.operations import Allowed
from memory.api.project_bounds import refuse_without_bounds
from memory.errors import BadInput

QUERY_FIELDS_MAX = 20
RESERVED = frozenset(  # never ids of memories
    (
        *("search", "turns", "mcp", "flush", "stats", "receipts", "export", "import", "everything", "profile"),
        *("sessions", "conversations", "messages", "openapi.json", "opt-out", "caller", "operator", "ui", "projects"),
        *("invitations", "docs"),
    )
)


def call_guard(callers: Callers) -> Guard:
    """Identifies callers; they become the `user` of the request. Nobody's body is read before."""

    async def check(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        """Raises `BadInput`."""
        allowed: Allowed | None = handler.opt.get("allowed")
        if allowed is None:  # the answer to OPTIONS
            return
        parameters = _parameters(connection.scope["query_string"])
        headers: list[tuple[bytes, bytes]] = list(connection.scope["headers"])
        known = ["user_id", *handler.opt["parameters"]]
        if allowed.access == "operate":
            callers.admit_operator(headers)
            known.remove("user_id")
        else:
            caller = callers.identify(headers, parameters.get("user_id"), allowed.access)
            if not allowed.of_projects:
                refuse_without_bounds(caller)
            connection.scope["user"] = caller
        refuse_unknown_parameters(parameters, known)
        if not allowed.is_streamed:
            assert isinstance(connection, Request)
            refuse_other_types(headers, await connection.body())

    return check


def caller(request: Request[Caller, Any, Any]) -> Caller:
    """Whom the guard identified."""
    return request.user


def path_id(request: Request[Any, Any, Any]) -> str:
    """The id in the path, which may be any text: `memory.api.front` quotes it."""
    found = unquote(str(request.path_params["id"]))
    if found in RESERVED and request.scope["path_template"].startswith("/v1/memory/{id}"):
        raise NotFoundException
    return found


def member_id(request: Request[Any, Any, Any]) -> str:
    """The second id in the path of a project's member."""
    return unquote(str(request.path_params["member"]))


def refuse_unknown_parameters(given: dict[str, str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise BadInput(unknown_name(name, known))


def _parameters(query_string: bytes) -> dict[str, str]:
    """Each parameter once, in UTF-8."""
    try:
        text = query_string.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        raise BadInput("the query string is not percent-encoded UTF-8, or too long") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise BadInput("a query parameter came twice; send each once")
    return parameters
