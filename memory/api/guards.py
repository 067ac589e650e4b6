"""What is checked of every call before its endpoint runs: parameters, caller, bounds of a token, type of the body; and
what keeps callers whose token names projects within them.
"""

from __future__ import annotations

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
from memory.api.identity import Caller, Forbidden
from memory.api.operations import Allowed, Call, TheLibrary
from memory.errors import BadInput, NotFound
from memory.model import Memory
from memory.model.projects import ProjectAccess
from memory.model.token_claims import project_within
from memory.service.library import Library

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
        for name in parameters:
            if name not in known:
                raise BadInput(unknown_name(name, known))
        if not allowed.is_streamed:
            assert isinstance(connection, Request)
            refuse_other_types(headers, await connection.body())

    return check


def call(request: Request[Caller, Any, Any], library: TheLibrary) -> Call:
    """What endpoints get: the library, and whom the guard identified."""
    return Call(library, request.user)


def path_id(request: Request[Any, Any, Any]) -> str:
    """The id in the path, which may be any text: `memory.api.front` quotes it."""
    found = unquote(str(request.path_params["id"]))
    if found in RESERVED and request.scope["path_template"].startswith("/v1/memory/{id}"):
        raise NotFoundException
    return found


def member_id(request: Request[Any, Any, Any]) -> str:
    """The second id in the path of a project's member."""
    return unquote(str(request.path_params["member"]))


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


# Tokens for some projects


def bounded_project(caller: Caller, named: str) -> str:
    """The project of a call that names `named` ("" for none). Raises `Forbidden` if that may not be used."""
    project_id = project_within(caller.projects, named)
    if project_id is None:
        raise Forbidden("your token is for other projects: name one of its own as project_id")
    return project_id


async def joined_projects(library: Library, caller: Caller) -> list[ProjectAccess]:
    """The shared projects of which the caller is a member, without those that their token does not name."""
    joined = await library.projects.membership.joined(caller.user_id)
    return [one for one in joined if is_within(caller, one.project.project_id)]


def is_within(caller: Caller, project_id: str) -> bool:
    return caller.projects is None or project_id in caller.projects


def refuse_without_bounds(caller: Caller) -> None:
    """For calls that concern all that is stored of a user."""
    if caller.projects is not None:
        raise Forbidden("your token is for some projects only, and this call concerns all of them")


def is_visible(caller: Caller, memory: Memory) -> bool:
    """Also memories of no project, as in a chat."""
    return caller.projects is None or memory.project_id in (*caller.projects, "")


async def refuse_foreign_memory(library: Library, caller: Caller, memory_id: str, *, is_change: bool) -> None:
    """Raises `NotFound` for a memory of another project, `Forbidden` for a change of one that all projects share."""
    if caller.projects is None:
        return
    memory = await library.get(caller.user_id, memory_id)
    if not is_visible(caller, memory):
        raise NotFound("no such memory")
    if is_change and not memory.project_id:
        raise Forbidden("your token is for some projects only, and this memory belongs to none")
