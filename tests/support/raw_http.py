"""HTTP/1.1 written by hand, for what no client library sends; and HTTP/2 as far as a library goes."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import h2.exceptions
import httpx

Headers = list[tuple[bytes, bytes]]
SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class RawAnswer:
    status: int
    content: bytes


@dataclass(frozen=True, slots=True)
class RawRequest:
    """`target`: path and query, as they are; `headers`: one line each, in order."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""


def over_http1(address: tuple[str, int], request: RawRequest, *, source: str = "127.0.0.1") -> RawAnswer:
    """Every byte as given. Status 0 where the connection is closed without an answer."""
    lines = [
        f"{request.method} {request.target} HTTP/1.1".encode(),
        b"Host: localhost",
        b"Connection: close",
        *(name + b": " + value for name, value in request.headers),
    ]
    if request.body:
        lines.append(b"Content-Length: %d" % len(request.body))
    received = b""
    with socket.create_connection(address, timeout=SECONDS_MAX, source_address=(source, 0)) as connection:
        connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + request.body)
        while chunk := _more(connection):
            received += chunk
    head, _, content = received.partition(b"\r\n\r\n")
    return RawAnswer(int(head.split(b" ", 2)[1]) if head else 0, content)


def over_http2(address: tuple[str, int], request: RawRequest, *, source: str = "127.0.0.1") -> RawAnswer | None:
    """None where HTTP/2 has no way to say it; status 0 where the connection is closed without an answer."""
    transport = httpx.HTTPTransport(verify=False, http1=False, http2=True, local_address=source)
    with httpx.Client(transport=transport, timeout=SECONDS_MAX, trust_env=False) as client:
        try:
            answer = client.request(
                request.method,
                f"http://{address[0]}:{address[1]}{request.target}",
                headers=[(b"host", b"localhost"), *request.headers],
                content=request.body,
            )
        except (httpx.LocalProtocolError, h2.exceptions.ProtocolError):
            return None
        except (httpx.RemoteProtocolError, httpx.NetworkError):
            return RawAnswer(0, b"")
    return RawAnswer(answer.status_code, answer.content)


def _more(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""
