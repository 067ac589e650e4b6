"""Errors as answers: one shape, `{"error": {"code", "message"}}`, and no detail of ours in it."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

import msgspec
import structlog
from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import ExceptionHandlersMap

from memory.api.asgi import AsgiSend, send_answer
from memory.api.bodies import BODY_BYTES_MAX
from memory.api.browsers import WrongType
from memory.api.identity import Forbidden, Unauthenticated
from memory.errors import BadInput, Conflict, MemproxyError, NotFound, Unavailable
from memory.model.memories import VersionChanged
from memory.service.idempotency import KeyReused
from memory.service.project_members import ProjectTaken, RightMissing
from memory.service.user_writes import OptedOut

RETRY_SECONDS = 1  # value of Retry-After when a part is down
CHANGED = "this was changed by another call at the same time; read it again"
CLIENT_GONE = 499  # nginx's code for a client that disconnected
STATUSES: dict[type[MemproxyError], int] = {
    NotFound: 404,
    Unauthenticated: 401,
    Forbidden: 403,
    OptedOut: 403,
    RightMissing: 403,
    ProjectTaken: 409,
    WrongType: 415,
    VersionChanged: 412,
    KeyReused: 422,
}
ROUTER_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}

log = structlog.get_logger(__name__)


class ErrorDetail(msgspec.Struct, frozen=True):
    """`code` is for programs, `message` for people: it says what was expected, what came, and what to do."""

    code: str
    message: str


class ErrorBody(msgspec.Struct, frozen=True):
    """Every answer with a status of 400 or more."""

    error: ErrorDetail


class ClientGone(HTTPException):
    """The client disconnected while it sent its body."""

    status_code = CLIENT_GONE


def refusal(code: str, message: str, status: int, headers: Mapping[str, str] | None = None) -> Response[ErrorBody]:
    body = ErrorBody(ErrorDetail(code, message))
    return Response(body, status_code=status, headers=dict(headers or {}), media_type=MediaType.JSON)


async def send_refusal(send: AsgiSend, code: str, message: str, status: int) -> None:
    """Answer outside the framework's handlers."""
    body = msgspec.json.encode(ErrorBody(ErrorDetail(code, message)))
    await send_answer(send, status, [(b"content-type", b"application/json")], body)


def _bad_input(_: Request[Any, Any, Any], error: BadInput) -> Response[ErrorBody]:
    status = next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 400)
    return refusal(error.code, str(error), 413 if error.code == "too_large" else status)


def _unavailable(_: Request[Any, Any, Any], error: Unavailable) -> Response[ErrorBody]:
    log.warning("a call could not be served", part=error.part, reason=str(error))
    message = f"{error.part} is unavailable; try again"
    return refusal("unavailable", message, 503, {"retry-after": str(RETRY_SECONDS)})


def _http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[ErrorBody]:
    """Errors of the framework: unknown path or method, a parameter of another type, a body that is too large."""
    status = error.status_code
    if status >= 500:
        return _unexpected(request, error)
    if isinstance(error, ValidationException):
        return refusal("bad_input", _invalid_parameters(error), 400)
    message = f"the body may have {BODY_BYTES_MAX} bytes; send several calls" if status == 413 else error.detail.lower()
    return refusal(ROUTER_CODES.get(status, "bad_input"), message, status, error.headers)


def _invalid_parameters(error: ValidationException) -> str:
    found = error.extra if isinstance(error.extra, list) else []
    said = [f"{one.get('key', 'the request')}: {one.get('message', 'is invalid')}" for one in found]
    return "; ".join(said) or "a parameter is invalid"


def _unexpected(_: Request[Any, Any, Any], error: Exception) -> Response[ErrorBody]:
    """An error of ours. The log gets its kind and where it was raised, the caller nothing of it."""
    log.error("a call failed", error=type(error).__name__, frames=traceback.format_tb(error.__traceback__))
    return refusal("internal", "something went wrong on our side", 500)


HANDLERS: ExceptionHandlersMap = {
    BadInput: _bad_input,
    Unavailable: _unavailable,
    Conflict: lambda _, __: refusal("conflict", CHANGED, 409),
    HTTPException: _http_error,
    Exception: _unexpected,
}
