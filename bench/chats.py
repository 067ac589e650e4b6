"""Sends chats over keep-alive connections, like a client. Failed calls are counted and do not end a bench.

Also the other calls of benches: the REST API, and the metrics page.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

REPLY_SECONDS_MAX = 30.0
AFTER_A_FAILURE_SECONDS = 0.05  # a server that refuses everybody is not asked a thousand times a second
TRIES = 3  # of a REST call that fills or asks, not of a chat
SEARCHED = ("used", "empty")

_LENGTH = re.compile(rb"content-length: *(\d+)")
_CHUNKED = b"transfer-encoding: chunked"
_DONE = b"data: [DONE]"


@dataclass(frozen=True, slots=True)
class Answer:
    """`milliseconds` until the last byte. `failure` is empty, or says why this is none; header names in lower case."""

    milliseconds: float
    failure: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def memory_status(self) -> str:
        return self.headers.get("x-memory-status", "none")

    @property
    def receipt(self) -> str:
        return self.headers.get("x-memory-receipt", "")


class Chats:
    """One client on one kept-alive connection, which is opened again after a failure."""

    def __init__(self, port: int, failures: Counter[str], path: str = "/v1/chat/completions") -> None:
        self._port, self._failures, self._path = port, failures, path.encode()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, body: bytes) -> Answer:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(REPLY_SECONDS_MAX):
                code, headers = await self._exchange(body)
            failure = "" if code == 200 else f"answered {code}"
        except TimeoutError:
            failure, headers = f"no answer within {REPLY_SECONDS_MAX:g} s", {}
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            failure, headers = type(error).__name__, {}
        took = (time.perf_counter() - started) * 1000
        if failure:
            self._failures[f"chat: {failure}"] += 1
            self.close()
            await asyncio.sleep(AFTER_A_FAILURE_SECONDS)
        return Answer(took, failure, headers)

    async def _exchange(self, body: bytes) -> tuple[int, dict[str, str]]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        head = b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" % self._path
        writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(answer.lower())
        if length is not None:
            await reader.readexactly(int(length[1]))
        elif _CHUNKED in answer.lower():
            await _read_stream(reader)
        else:
            raise ValueError("an answer without a length")
        first, *rest = answer.decode("latin-1").split("\r\n")
        lines = (line.partition(":") for line in rest if line)
        return int(first.split(" ")[1]), {name.lower(): value.strip() for name, _, value in lines}

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


async def _read_stream(reader: asyncio.StreamReader) -> None:
    """Raises `ValueError` if it ends before the upstream said that it was done."""
    tail = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        tail = (tail + await reader.readexactly(size + 2))[-len(_DONE) - 6 :]
    await reader.readexactly(2)
    if _DONE not in tail:
        raise ValueError("a stream that broke off")


@asynccontextmanager
async def connected(port: int, count: int, failures: Counter[str]) -> AsyncIterator[list[Chats]]:
    clients = [Chats(port, failures) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def chat(question: str, user: str = "", **config: Any) -> bytes:
    """The body of a short chat. Each question opens a session of its own; `config` is `memory_config`."""
    messages = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": question}]
    body: dict[str, Any] = {"model": "m", "messages": messages}
    if user:
        body["memory_context"] = {"user_id": user, "session_id": question[-16:].strip()}
    if config:
        body["memory_config"] = config
    return json.dumps(body).encode()


# Other calls


class Rest:
    """The memory API. What stays without an answer after some tries is counted, and None."""

    def __init__(self, url: str, failures: Counter[str]) -> None:
        self._failures = failures
        self._client = httpx.AsyncClient(base_url=url, timeout=60)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def post(self, path: str, user: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        return await self._asked("POST", path, user, json=body)

    async def get(self, path: str, user: str, *, may_be_missing: bool = False) -> dict[str, Any] | None:
        """`may_be_missing`: 404 is an answer, and None. `user` "": a call of an operator."""
        return await self._asked("GET", path, user, expected=404 if may_be_missing else 0)

    async def _asked(
        self, method: str, path: str, user: str, *, expected: int = 0, **more: Any
    ) -> dict[str, Any] | None:
        for _ in range(TRIES):
            failure = ""
            try:
                named = {"user_id": user} if user else {}
                answer = await self._client.request(method, path, params=named, **more)
                if not answer.is_error:
                    return dict(answer.json())
                if answer.status_code == expected:
                    return None
                failure = f"answered {answer.status_code}"
            except (httpx.HTTPError, ValueError) as error:
                failure = type(error).__name__
            self._failures[f"REST {method}: {failure}"] += 1
            await asyncio.sleep(AFTER_A_FAILURE_SECONDS)
        return None

    async def add(self, user: str, contents: Sequence[str]) -> list[str]:
        """Memories as given; their ids."""
        found = await self.post("/v1/memory", user, {"memories": [{"content": content} for content in contents]})
        return list(found["ids"]) if found else []


async def samples(metrics_port: int, failures: Counter[str]) -> dict[str, float] | None:
    """Every sample of the product's page of metrics; None where there is none to be had."""
    try:
        async with httpx.AsyncClient(timeout=10) as client:
            page = (await client.get(f"http://127.0.0.1:{metrics_port}/metrics")).raise_for_status().text
    except httpx.HTTPError as error:
        failures[f"metrics: {type(error).__name__}"] += 1
        return None
    lines = (line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def grown(before: Mapping[str, float] | None, after: Mapping[str, float] | None, name: str) -> float:
    """By how much all samples of this name grew, whatever their labels; NaN where a page is missing."""
    if before is None or after is None:
        return float("nan")
    return sum(
        value - before.get(key, 0.0) for key, value in after.items() if key == name or key.startswith(name + "{")
    )
