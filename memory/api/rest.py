"""The REST API: every call is one endpoint here, and every endpoint is one call of the library.

It only translates: HTTP to calls, results to JSON, errors to status codes. Logs and labels contain no id, query or
text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import parse_qsl

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope as Asked

from memory.api import shapes
from memory.api.browsers import WrongType, refuse_other_types, refuse_pages
from memory.api.callers import USERS_ONLY, CallerRules, Callers
from memory.api.calls import Call, Endpoint
from memory.api.calls import json_answer as _json
from memory.api.conversations import conversation_routes
from memory.api.identity import DEVELOPMENT, Forbidden, Unauthenticated
from memory.api.opt_outs import opt_out_routes, opt_out_shape
from memory.api.project_bounds import is_visible, refuse_foreign_memory, refuse_without_bounds
from memory.errors import BadInput, Conflict, NotFound, Unavailable
from memory.model import MemoryStatus, RequestOptions, Scope
from memory.runtime.metrics import Metrics
from memory.service.library import PAGE_MEMORIES_MAX, Library
from memory.service.opt_outs import OptedOut

BODY_BYTES_MAX = 1 << 20  # 200 memories of ordinary length, or a long history; more takes several calls
QUERY_FIELDS_MAX = 20
ONE = "/v1/memory/{id}"
PROFILE_PATHS = ("/v1/profile", "/v1/memory/profile")  # the second is the one below the proxy's port
RESERVED = frozenset(  # never ids
    (
        *("search", "turns", "mcp", "flush", "stats", "receipts", "export", "everything", "profile"),
        *("sessions", "conversations", "messages", "opt-out"),
    )
)
RETRY_SECONDS = 1  # value of Retry-After when a part is down

log = structlog.get_logger(__name__)


class _Route(Route):
    """A route with an id segment does not match the names of calls, so that their other methods give 405."""

    def matches(self, scope: Asked) -> tuple[Match, Asked]:
        match, found = super().matches(scope)
        is_call = self.path == ONE and match is not Match.NONE and found["path_params"]["id"] in RESERVED
        return (Match.NONE, {}) if is_call else (match, found)


def create_app(
    library: Library,
    *,
    identity_mode: str,
    edge_secret: str,
    metrics: Metrics,
    routes: Sequence[Route] = (),
    rules: CallerRules = USERS_ONLY,
) -> Starlette:
    """The application. `edge_secret`: added by the proxy; "" trusts nobody outside development. `routes`: of others."""

    is_development = identity_mode == DEVELOPMENT
    callers = Callers(identity_mode=identity_mode, edge_secret=edge_secret, rules=rules, metrics=metrics)

    def route(path: str, method: str, endpoint: Endpoint, *parameters: str) -> Route:
        async def handle(request: Request) -> Response:
            started, code = time.perf_counter(), 500
            try:
                if is_development:
                    refuse_pages(request.scope["headers"])
                call = await _call(request, parameters, callers, endpoint)
                response = await endpoint(library, call)
                code = response.status_code
            except (BadInput, Unavailable, Conflict) as error:
                response = _refusal(error)
                code = response.status_code
            except ClientDisconnect:
                code = 499  # nginx's code for a client that disconnected
                raise
            finally:
                metrics.api_seconds.labels(path, str(code)).observe(time.perf_counter() - started)
            return response

        return _Route(path, handle, methods=[method])

    return Starlette(
        routes=[
            *routes,
            *_health_routes(library),
            route("/v1/memory", "POST", add),
            route("/v1/memory", "GET", show_page, *_PAGE_PARAMETERS),
            route("/v1/memory", "DELETE", delete_scope, "project_id"),
            route("/v1/memory/search", "POST", search),
            route("/v1/memory/turns", "POST", append_turns),
            route("/v1/memory/turns/{id}", "DELETE", forget_source),
            route("/v1/memory/flush", "POST", flush),
            route("/v1/memory/stats", "GET", show_stats),
            route("/v1/memory/receipts/{id}", "GET", show_receipt),
            *conversation_routes(route),
            *_profile_routes(route),
            *opt_out_routes(route),
            route(ONE, "GET", show),
            route(ONE, "PATCH", edit),
            route(ONE, "DELETE", delete),
            route(f"{ONE}/history", "GET", show_history),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _unexpected},
    )


def _health_routes(library: Library) -> list[Route]:
    async def ready(_: Request) -> Response:
        is_ready = await library.is_ready()
        return _json({"status": "ok" if is_ready else "unavailable"}, 200 if is_ready else 503)

    async def alive(_: Request) -> Response:
        return _json({"status": "ok"})

    return [Route("/health", ready, methods=["GET"]), Route("/healthz", alive, methods=["GET"])]


def _profile_routes(route: Callable[..., Route]) -> list[Route]:
    calls = (("GET", show_profile), ("PUT", set_profile), ("DELETE", delete_profile))
    return [route(path, method, endpoint, "project_id") for path in PROFILE_PATHS for method, endpoint in calls]


_PAGE_PARAMETERS = ("status", "memory_type", "as_of", "limit", "cursor", "project_id")


async def add(library: Library, call: Call) -> Response:
    body = shapes.decoded(call.body, shapes.AddBody)
    given = [shapes.new_memory(memory) for memory in body.memories]
    ids = await library.add(Scope(call.user_id), [replace(m, project_id=call.project(m.project_id)) for m in given])
    return _json({"ids": ids}, 201)


async def search(library: Library, call: Call) -> Response:
    started = time.perf_counter()
    body = shapes.decoded(call.body, shapes.SearchBody)
    found = await library.search(
        Scope(call.user_id, call.project(body.project_id), body.session_id or "", body.agent_id or ""),
        query=body.query,
        history=shapes.messages_of(body.history, "history"),
        options=RequestOptions(
            memory_types=tuple(body.memory_types or ()), retrieval_limit=body.limit, token_budget=body.token_budget
        ),
        as_of=shapes.time_of(body.as_of, "as_of"),
    )
    took_ms = round((time.perf_counter() - started) * 1000, 3)
    return _json({"memories": [shapes.candidate_shape(candidate) for candidate in found], "took_ms": took_ms})


async def show_page(library: Library, call: Call) -> Response:
    given = call.parameters
    page = await library.page(
        Scope(call.user_id, call.project(given.get("project_id"))),
        status=_status(given.get("status", MemoryStatus.ACTIVE.value)),
        memory_type=given.get("memory_type", ""),
        as_of=shapes.time_of(given.get("as_of"), "as_of"),
        limit=_limit(given.get("limit", str(PAGE_MEMORIES_MAX))),
        cursor=given.get("cursor", ""),
    )
    return _json({"memories": list(map(shapes.memory_shape, page.memories)), "next_cursor": page.next_cursor or None})


async def delete_scope(library: Library, call: Call) -> Response:
    if "user_id" not in call.parameters:  # that it is the caller's own was checked with the identity
        raise BadInput("user_id must be given: this deletes all memories of that user, or of one of their projects")
    if call.parameters.get("project_id") == "":
        raise BadInput("project_id is empty: leave it out to delete all memories of the user")
    deleted = await library.delete_scope(call.user_id, call.project(call.parameters.get("project_id")))
    return _json({"deleted": deleted.memories, "withdrawn_turns": deleted.turns})


async def append_turns(library: Library, call: Call) -> Response:
    body = shapes.decoded(call.body, shapes.TurnsBody)
    if not body.session_id:
        raise BadInput("session_id must not be empty: it keeps the turns of one conversation together")
    turn_id = await library.append_turn(
        Scope(call.user_id, call.project(body.project_id), body.session_id, body.agent_id or ""),
        shapes.messages_of(body.messages, "messages"),
        at=shapes.time_of(body.at, "at"),
        trace_id=body.trace_id or "",
    )
    return _json({"turn_id": turn_id}, 202)


async def forget_source(library: Library, call: Call) -> Response:
    forgotten = await library.forget_source(call.user_id, call.path_id)
    return _json({"deleted": len(forgotten.forgotten), "kept": len(forgotten.kept)})


async def flush(library: Library, call: Call) -> Response:
    body = shapes.decoded(call.body, shapes.FlushBody) if call.body.strip() else shapes.FlushBody()
    left = await library.flush(call.user_id, body.session_id or "")
    return _json({"pending": left.pending, "failed": left.failed})


async def show_stats(library: Library, call: Call) -> Response:
    stats = await library.stats(call.user_id)
    return _json(
        {
            "memories": {"active": stats.active, "superseded": stats.superseded, "archived": stats.archived},
            "by_type": stats.by_type,
            "turns": {"pending": stats.pending_turns, "failed": stats.failed_turns},
            **opt_out_shape(stats.opted_out_since),
        }
    )


async def show_receipt(library: Library, call: Call) -> Response:
    return _json(shapes.receipt_shape(await library.receipt(call.user_id, call.path_id)))


async def show_profile(library: Library, call: Call) -> Response:
    project_id = call.project(call.parameters.get("project_id"))
    return _json(shapes.profile_shape(await library.profiles.show(call.user_id, project_id)))


async def set_profile(library: Library, call: Call) -> Response:
    body = shapes.decoded(call.body, shapes.ProfileBody)
    shown = await library.profiles.set_own(
        call.user_id, call.project(call.parameters.get("project_id")), pinned=body.pinned, is_enabled=body.enabled
    )
    return _json(shapes.profile_shape(shown))


async def delete_profile(library: Library, call: Call) -> Response:
    await library.profiles.delete(call.user_id, call.project(call.parameters.get("project_id")))
    return _json({"deleted": True})


async def show(library: Library, call: Call) -> Response:
    await refuse_foreign_memory(library, call.caller, call.path_id, is_change=False)
    return _json(shapes.memory_shape(await library.get(call.user_id, call.path_id)))


async def edit(library: Library, call: Call) -> Response:
    await refuse_foreign_memory(library, call.caller, call.path_id, is_change=True)
    changed = shapes.edit_of(shapes.decoded(call.body, shapes.EditBody))
    return _json(shapes.memory_shape(await library.patch(call.user_id, call.path_id, changed)))


async def delete(library: Library, call: Call) -> Response:
    await refuse_foreign_memory(library, call.caller, call.path_id, is_change=True)
    await library.delete(call.user_id, call.path_id)
    return _json({"deleted": 1})


async def show_history(library: Library, call: Call) -> Response:
    await refuse_foreign_memory(library, call.caller, call.path_id, is_change=False)
    history = await library.history(call.user_id, call.path_id)
    seen = [memory for memory in history if is_visible(call.caller, memory)]
    return _json({"memories": list(map(shapes.memory_shape, seen))})


READING = frozenset({search})  # besides all that is called with GET
OF_PROJECTS = frozenset(  # calls that stay within the projects of their caller; all others concern the whole user
    (
        *(add, search, show_page, delete_scope, append_turns, show, edit, delete, show_history),
        *(show_profile, set_profile, delete_profile),
    )
)


async def _call(request: Request, known: Sequence[str], callers: Callers, endpoint: Endpoint) -> Call:
    """Identify the caller and read the body. Raises `BadInput` before reading the body of an unidentified caller."""
    parameters = _parameters(request.scope["query_string"])
    headers: list[tuple[bytes, bytes]] = request.scope["headers"]
    is_reading = request.method in ("GET", "HEAD") or endpoint in READING
    caller = callers.identify(headers, parameters.get("user_id"), "read" if is_reading else "write")
    if endpoint not in OF_PROJECTS:
        refuse_without_bounds(caller)
    shapes.refuse_unknown_parameters(parameters, ["user_id", *known])
    body = await _body(request)
    refuse_other_types(headers, body)
    return Call(caller.user_id, request.path_params.get("id", ""), parameters, body, caller)


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


async def _body(request: Request) -> bytes:
    too_large = BadInput(f"the body may have {BODY_BYTES_MAX} bytes; send several calls", code="too_large")
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > BODY_BYTES_MAX:
        raise too_large
    chunks, size = [], 0
    async for chunk in request.stream():
        chunks.append(chunk)
        size += len(chunk)
        if size > BODY_BYTES_MAX:
            raise too_large
    return b"".join(chunks)


def _status(text: str) -> MemoryStatus | None:
    if text == "all":
        return None
    if text not in list(MemoryStatus):
        raise BadInput(f"status must be {', '.join(MemoryStatus)} or all; got {text!r:.40}")
    return MemoryStatus(text)


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= PAGE_MEMORIES_MAX):
        raise BadInput(f"limit must be a whole number from 1 to {PAGE_MEMORIES_MAX}; got {text!r:.40}")
    return int(text)


def _refusal(error: BadInput | Unavailable | Conflict) -> Response:
    match error:
        case Unavailable():
            log.warning("a call could not be served", part=error.part, reason=str(error))
            message = f"{error.part} is unavailable; try again"
            return _error("unavailable", message, 503, {"retry-after": str(RETRY_SECONDS)})
        case Conflict():
            return _error("conflict", "this was changed by another call at the same time; read it again", 409)
        case NotFound():
            return _error(error.code, str(error), 404)
        case Unauthenticated():
            return _error(error.code, str(error), 401)
        case Forbidden() | OptedOut():
            return _error(error.code, str(error), 403)
        case WrongType():
            return _error(error.code, str(error), 415)
        case _:
            return _error(error.code, str(error), 413 if error.code == "too_large" else 400)


async def _http_error(_: Request, error: Exception) -> Response:
    """Errors of the router: unknown path or method."""
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "bad_request")
    return _error(code, error.detail.lower(), error.status_code, dict(error.headers or {}))


async def _unexpected(_: Request, error: Exception) -> Response:
    """An error of ours. The log gets the traceback, the caller no details."""
    log.error("a call failed", error=type(error).__name__)
    return _error("internal", "something went wrong on our side", 500)


def _error(code: str, message: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return _json({"error": {"code": code, "message": message}}, status, headers)
