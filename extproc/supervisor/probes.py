"""Checks whether a part answers: one request with a time-out, from outside.

Probes start, stop and decide nothing. Each returns False if the part is unreachable, does not answer in time, or is not
ready. `ListenerWatch` decides from one look after another whether Envoy has lost its listener, so that only a new Envoy
serves chats. A restart cuts off whoever is served, so a single look decides nothing, and a listener that is merely busy
is left alone: it lets callers wait for a while, or closes connections past its limit, but it refuses nobody.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2

Where: TypeAlias = tuple[str, int] | Path
"""Host and port, or a Unix socket."""

PROBE_SECONDS = 2.0
LISTENER_PATH = "/v1/memory/proxy-alive"  # as in envoy/envoy.yaml
ANSWER_BYTES_MAX = 1 << 22  # far above Envoy's /clusters with many endpoints
REFUSALS_MIN = 2  # looks in a row: once may be a moment of its start
SILENT_LOOKS_MIN = 12  # in a row, about a minute: an overload that lasts so long serves nobody either
_MILVUS_VERSION = "/milvus.proto.milvus.MilvusService/GetVersion"
_HEALTH_CHECK = "/grpc.health.v1.Health/Check"


class ListenerSign(StrEnum):
    """What one request through the listener showed."""

    LIVES = "lives"  # it answered, or closed the connection, or the look itself failed
    REFUSES = "refuses"  # nobody listens
    IS_SILENT = "is_silent"  # the kernel accepted, or let us wait, and no answer came in time


class ListenerWatch:
    """The signs of one run, in their order."""

    def __init__(self) -> None:
        self._last = ListenerSign.LIVES
        self._repeated = 0

    def is_lost(self, sign: ListenerSign, *, is_live: bool) -> bool:
        """`is_live`: Envoy says that it serves, so that its listener should be there. Starts again after True."""
        if sign is ListenerSign.REFUSES and not is_live:  # it is starting, or its end is noticed elsewhere
            sign = ListenerSign.LIVES
        self._repeated = self._repeated + 1 if sign is self._last else 1
        self._last = sign
        looks_min = {ListenerSign.REFUSES: REFUSALS_MIN, ListenerSign.IS_SILENT: SILENT_LOOKS_MIN}.get(sign)
        if looks_min is None or self._repeated < looks_min:
            return False
        self._repeated = 0
        return True


def address_of(url: str) -> Where:
    """The socket of `unix:PATH`, or host and port of an address."""
    return Path(url.removeprefix("unix:")) if url.startswith("unix:") else host_and_port(url)


def host_and_port(url: str) -> tuple[str, int]:
    """The default port of its scheme if it names none."""
    parts = urlsplit(url if "://" in url else f"tcp://{url}")
    implied = {"https": 443, "http": 80}.get(parts.scheme, 19530)
    return parts.hostname or "127.0.0.1", parts.port or implied


async def accepts_connections(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def milvus_answers(uri: str) -> bool:
    """Whether Milvus or Milvus Lite answers a call; a refusal for a missing password counts as an answer."""
    where = address_of(uri)
    if isinstance(where, Path):
        target = uri
    elif uri.startswith("https://"):
        return await accepts_connections(*where)
    else:
        target = "{}:{}".format(*where)
    answer = await _call(target, _MILVUS_VERSION, b"")
    return answer not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


async def filter_serves(target: str) -> bool:
    answer = await _call(target, _HEALTH_CHECK, b"")
    if not isinstance(answer, bytes):
        return False
    status = health_pb2.HealthCheckResponse.FromString(answer).status
    return bool(status == health_pb2.HealthCheckResponse.SERVING)


async def answers(target: str) -> bool:
    """Whether a part works: a filter at `unix:PATH` or `grpc:HOST:PORT`, another one at a URL of HTTP."""
    if not target.startswith(("http://", "https://")):
        return await filter_serves(target.removeprefix("grpc:"))
    return await answers_http(host_and_port(target), urlsplit(target).path or "/")


async def _call(target: str, method: str, request: bytes) -> bytes | grpc.StatusCode:
    """One unary call without stubs: the answer as bytes, or the error status."""
    async with grpc.aio.insecure_channel(target, options=(("grpc.enable_http_proxy", 0),)) as channel:
        try:
            answer: bytes = await channel.unary_unary(method)(request, timeout=PROBE_SECONDS)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return answer


async def answers_http(where: Where, path: str) -> bool:
    status, _ = await ask_http(where, path)
    return status == 200


async def ask_http(where: Where, path: str, *, method: str = "GET") -> tuple[int, bytes]:
    """Status and body; (0, b"") if nobody answers."""
    return await asyncio.to_thread(ask_http_blocking, where, path, method)


def ask_http_blocking(where: Where, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = _connection(where)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read(ANSWER_BYTES_MAX)
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def _connection(where: Where) -> http.client.HTTPConnection:
    if isinstance(where, Path):
        return _SocketConnection(where)
    return http.client.HTTPConnection(*where, timeout=PROBE_SECONDS)


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PROBE_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PROBE_SECONDS)
        self.sock.connect(str(self._path))


def seen_listener(where: tuple[str, int]) -> ListenerSign:
    """Blocks."""
    connection = _connection(where)
    try:
        connection.request("GET", LISTENER_PATH)
        connection.getresponse()
    except ConnectionRefusedError:
        return ListenerSign.REFUSES
    except TimeoutError:
        return ListenerSign.IS_SILENT
    except (OSError, http.client.HTTPException):
        return ListenerSign.LIVES
    finally:
        connection.close()
    return ListenerSign.LIVES


async def envoy_sees_all(admin: Where, *, endpoints_of: frozenset[str]) -> bool:
    """Whether Envoy is live, and its health checks pass for every endpoint of these clusters."""
    if not await answers_http(admin, "/ready"):
        return False
    status, body = await ask_http(admin, "/clusters?format=json")
    return status == 200 and all_are_healthy(body, endpoints_of=endpoints_of)


def all_are_healthy(clusters: bytes, *, endpoints_of: frozenset[str]) -> bool:
    """Parses Envoy's `/clusters?format=json`. A cluster without endpoints is not healthy."""
    found = {cluster["name"]: cluster.get("host_statuses", []) for cluster in json.loads(clusters)["cluster_statuses"]}
    return all(
        found.get(name) and all(_is_healthy(host.get("health_status", {})) for host in found[name])
        for name in endpoints_of
    )


def _is_healthy(status: dict[str, object]) -> bool:
    return not any(flag.startswith(("failed_", "pending_")) and value is True for flag, value in status.items())


async def active_requests(admin: Where) -> int:
    """The number of active client requests in Envoy, without its admin page; 0 if it is unavailable."""
    _, body = await ask_http(admin, "/stats?format=json&filter=^http%5C..*downstream_rq_active$")
    try:
        stats = json.loads(body)["stats"]
    except (ValueError, KeyError):
        return 0
    return sum(int(stat["value"]) for stat in stats if not str(stat["name"]).startswith("http.admin."))
