"""Stands before the framework's router: web pages are refused, ids in paths may be any text, HEAD is GET without a
body, and calls are counted and traced by the template of their path, never by the path.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from urllib.parse import quote, unquote

from memory.api.asgi import AsgiApp, AsgiMessage, AsgiReceive, AsgiScope, AsgiSend
from memory.api.browsers import refuse_forged
from memory.api.callers import Callers
from memory.api.identity import DEVELOPMENT, Forbidden
from memory.api.refusals import CLIENT_GONE, ClientGone, send_refusal
from memory.runtime.tracing import UNMATCHED, ServedCall, Telemetry

OURS = "/v1/"
PROBES = frozenset(("/health", "/healthz"))  # open to everybody; whatever else is called is checked, found or not
TRACE_HEADER = b"traceparent"
IDS_AFTER = {"sessions": ("end",), "conversations": ("messages", "trim", "compress"), "messages": ()}


class Front:
    """An application around the framework's. `passed`: paths of others (MCP), which get what a page may send, and are
    traced. `callers`: know which pages may call; where an edge identifies users, it answers for those of REST.
    """

    def __init__(self, app: AsgiApp, *, callers: Callers, passed: frozenset[str], telemetry: Telemetry) -> None:
        self._app = app
        self._callers = callers
        self._passed = passed
        self._metrics = telemetry.metrics
        self._tracer = telemetry.tracer

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = _path(scope)
        exchange = _Exchange(receive, send, is_head=scope["method"] == "HEAD")
        inner: AsgiScope = {**scope, "path": path, "method": "GET" if exchange.is_head else scope["method"]}
        if path in PROBES:  # they send any Host, and the framework refuses some; none matters here
            inner["headers"] = [(name, value) for name, value in scope["headers"] if name != b"host"]
            await self._app(inner, exchange.receive, exchange.send)
            return
        is_passed, started = path.rstrip("/") in self._passed, time.perf_counter()
        with self._tracer.served(parent=_parent(scope["headers"])) as name:
            try:
                if is_passed:
                    await self._checked(scope, receive, exchange, is_passed=True)
                else:
                    await self._checked(inner, exchange.receive, exchange, is_passed=False)
            finally:
                route = path.rstrip("/") if is_passed else inner.get("path_template", "")
                name(ServedCall(scope["method"], route, exchange.code))
                if path.startswith(OURS) and not is_passed:
                    seconds = self._metrics.api_seconds.labels(route or UNMATCHED, str(exchange.code))
                    seconds.observe(time.perf_counter() - started)

    async def _checked(self, scope: AsgiScope, receive: AsgiReceive, exchange: _Exchange, *, is_passed: bool) -> None:
        try:
            if is_passed or self._callers.identity_mode == DEVELOPMENT:
                self._callers.refuse_page(scope["headers"])
            if not is_passed:
                refuse_forged(scope["method"], scope["headers"])
        except Forbidden as error:
            await send_refusal(exchange.send, error.code, str(error), 403)
            return
        await self._app(scope, receive, exchange.send)


class _Exchange:
    """The two directions of a request. `code`: the status that it gets."""

    def __init__(self, receive: AsgiReceive, send: AsgiSend, *, is_head: bool) -> None:
        self.is_head = is_head
        self.code = 500
        self._is_started = False
        self._receive = receive
        self._send = send

    async def receive(self) -> AsgiMessage:
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._is_started:
            self.code = CLIENT_GONE
            raise ClientGone
        return message

    async def send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self._is_started, self.code = True, message["status"]
        if message["type"] == "http.response.body" and self.is_head:
            message = {**message, "body": b""}
        await self._send(message)


def _parent(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The `traceparent` of the call; "" without one, and with several, which is malformed."""
    values = [value for name, value in headers if name == TRACE_HEADER]
    return values[0].decode("latin-1") if len(values) == 1 else ""


def _path(scope: AsgiScope) -> str:
    """The path with each of its segments quoted, so that an id is one segment whatever it contains.

    Without empty segments, which the framework would leave out later: what is checked is what is called.
    Slashes in the id of a session, a conversation or a message may also come as they are.
    """
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    segments = [unquote(one) for one in raw.decode("latin-1").split("?")[0].split("/")]
    base = 3 if segments[:3] == ["", "v1", "memory"] else 2
    actions = IDS_AFTER.get(segments[base]) if len(segments) > base else None
    if actions is not None and len(segments) > base + 2:
        last, method = segments[-1], scope["method"]  # sessions are shown and deleted under their ids alone
        has_action = last in actions and (last != "end" or method in ("POST", "OPTIONS"))
        end = len(segments) - has_action
        segments = [*segments[: base + 1], "/".join(segments[base + 1 : end]), *segments[end:]]
    quoted = "/".join(quote(one, safe="") for one in segments if one)
    return f"/{quoted}/" if quoted and not segments[-1] else f"/{quoted}"
