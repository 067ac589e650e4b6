"""`memproxy mcp`: the API's MCP server over standard input and output, for clients that start their servers themselves.

It defines no tools: each message, which is a line, goes to the API of a running memproxy, and its answer back. What the
API cannot answer is answered here, by one error of the protocol. It ends when its input does, after the last answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from typer import Option

from memory.cli.options import ConfigOption
from memory.errors import MemproxyError, Unavailable
from memory.typed import from_json

if TYPE_CHECKING:
    import httpx

CALLS_MAX = 8  # at once; further messages wait
PATH = "/mcp"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
UNREADABLE, INVALID, FAILED = -32_700, -32_600, -32_603  # codes of JSON-RPC


def mcp(
    *,
    user: Annotated[str, Option(help="Whose memories.")],
    url: Annotated[
        str | None, Option("--api", help="Base URL of the API. [default: http://127.0.0.1:API_PORT]")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Serve the memory tools to an MCP client on standard input and output, until it closes them."""
    from memory.cli.api_client import api_client

    lock = Lock()

    def write(answer: bytes) -> None:
        rest = memoryview(answer + b"\n")
        with lock, suppress(BrokenPipeError):  # a client that has gone needs no answer
            while rest:
                rest = rest[os.write(sys.stdout.fileno(), rest) :]

    with api_client(config, url, user) as api, ThreadPoolExecutor(CALLS_MAX) as calls:
        for line in sys.stdin.buffer:
            if line.strip():
                calls.submit(_serve, api, line, write)


def _serve(api: httpx.Client, line: bytes, write: Callable[[bytes], None]) -> None:
    from httpx import HTTPError

    try:
        message = from_json(line, Any)
    except (msgspec.DecodeError, RecursionError) as error:
        write(_error(None, UNREADABLE, f"this line is not JSON that can be read: {error}"))
        return
    if not isinstance(message, dict):
        write(_error(None, INVALID, "expected one message a line: an object of JSON-RPC"))
        return
    is_answered = "id" in message and not {"result", "error"} & message.keys()
    try:
        answer = _answer(api.post(PATH, content=line, headers=HEADERS), message)
    except (MemproxyError, HTTPError) as error:
        answer = _error(message.get("id"), FAILED, str(error))
    if is_answered:
        write(answer)


def _answer(response: httpx.Response, message: dict[str, Any]) -> bytes:
    """In one line. An error that names no message is about this one. Raises what the API says in its own form."""
    from memory.cli.api_client import answer_of

    try:
        content = from_json(response.content, dict[str, Any]) if response.content else None
    except (msgspec.DecodeError, RecursionError):
        content = None
    if content is not None and "jsonrpc" in content:
        return msgspec.json.encode(content if content.get("id") is not None else content | {"id": message.get("id")})
    answer_of(response)
    raise Unavailable("the REST API", f"what answers there is not it (HTTP {response.status_code})")


def _error(message_id: object, code: int, words: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": words}})
