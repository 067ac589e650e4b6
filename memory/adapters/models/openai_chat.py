"""A chat model over OpenAI's `/v1/chat/completions`: vLLM, llama.cpp's server, or a compatible one.

One answer at a time, not streamed, as JSON of a schema if one is given. The answer is untrusted: it is read up to a
size and time limit, and becomes text, `Unusable` (no usable answer to this request), `Late` (accepted, but not answered
in time) or plain `Unavailable` (no request would be answered). Questions and answers never appear in logs or errors.
Cancelling a call closes its connection, which tells model servers to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx
import msgspec

from memory.adapters.breaker import Breaker
from memory.adapters.http_probe import body_of
from memory.adapters.well_formed import well_formed
from memory.errors import Late, Unavailable, Unusable
from memory.model import Message
from memory.ports import Completion
from memory.runtime.metrics import Metrics
from memory.typed import converted, from_json

PART = "model"
ANSWER_BYTES_MAX = 256 << 10  # a hundred facts are 30 KB; a longer answer is useless
CONNECTIONS_MAX = 16
KEEP_ALIVE_SECONDS = 60.0
OK = 200
# Errors of this request; any other status concerns all requests (a missing key, for example)
BAD_REQUEST = frozenset({400, 413, 422})
SCHEMA_NAME = "answer"
TAKEN = "send_request_body.complete"  # event of httpx's trace: the server has received the request
CUT = "length"  # the protocol's reason for an answer that reached `max_tokens`


@dataclass(frozen=True, slots=True)
class ChatServer:
    """`endpoint`: a base URL, with or without `/v1`; `model`: its name on the server.

    `skips_thinking`: ask a reasoning model not to think aloud, by the template argument of vLLM and llama.cpp; other
    servers may refuse the unknown field. `priority`: vLLM serves higher numbers later, if started with priority
    scheduling, and refuses the field otherwise.
    """

    endpoint: str
    model: str
    temperature: float = 0.1
    skips_thinking: bool = False
    api_key: str = ""
    priority: int | None = None
    role: str = "model"  # its purpose; a metric label

    @property
    def url(self) -> str:
        base = self.endpoint.rstrip("/")
        if base.endswith("/chat/completions"):
            return base
        return f"{base}/chat/completions" if base.endswith("/v1") else f"{base}/v1/chat/completions"


class _Said(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: Any = None


class _Answer(msgspec.Struct):
    choices: list[_Choice]
    usage: Any = None


class _CachedTokens(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _CachedTokens | None = None


@dataclass(slots=True)
class _Sending:
    """A request being sent. `is_taken`: the server has received all of it."""

    body: bytes
    is_taken: bool = False

    async def trace(self, event: str, _: Mapping[str, Any]) -> None:
        """Called by httpx at each step."""
        self.is_taken = self.is_taken or event.endswith(TAKEN)


class OpenAiChatModel:
    """`memory.ports.ChatModel`. Open with `async with`. Needs no running server at its start, and reconnects."""

    def __init__(self, server: ChatServer, *, metrics: Metrics | None = None, breaker: Breaker | None = None) -> None:
        """`breaker`: for callers that should fail at once while the model is down, instead of each waiting for it."""
        self._server = server
        self._metrics = metrics
        self._breaker = breaker
        self._client: httpx.AsyncClient | None = None
        self._late = ""  # reason of the last failure, if that was a late answer and not an outage

    async def __aenter__(self) -> Self:
        key = {"authorization": f"Bearer {self._server.api_key}"} if self._server.api_key else {}
        self._client = httpx.AsyncClient(
            headers={"content-type": "application/json", "accept-encoding": "identity"} | key,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX, keepalive_expiry=KEEP_ALIVE_SECONDS),
            timeout=None,  # noqa: S113 - ours covers the whole call, also one whose bytes drip
            trust_env=False,  # proxies for the internet do not apply to a local model
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """The first choice, unchanged. Raises `Unusable`, `Late` and `Unavailable`, as the port says."""
        began_at = asyncio.get_running_loop().time()
        self._admit(began_at, seconds)
        sending = _Sending(self._body(messages, max_tokens=max_tokens, schema=schema))
        try:
            async with asyncio.timeout(seconds):
                status, answer = await self._posted(sending)
        except TimeoutError:
            raise self._failure(f"no answer within {seconds:g} s", began_at, is_late=sending.is_taken) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise self._failure(
                type(error).__name__, began_at, is_certain=isinstance(error, httpx.ConnectError)
            ) from None
        if status != OK and status not in BAD_REQUEST:
            raise self._failure(f"it answered {status}", began_at)
        if self._breaker is not None:
            self._breaker.succeeded()
        try:
            said, usage = _completion_of(status, answer)
        except Unusable:
            self._count("unusable")
            raise
        self._count("answered", usage)
        return said

    def _admit(self, now: float, seconds: float) -> None:
        if self._breaker is None:
            return
        try:
            self._breaker.admit(now, seconds=seconds)
        except Unavailable:
            self._count("spared")
            if self._late:
                raise Late(PART, self._late) from None
            raise

    def _failure(self, reason: str, began_at: float, *, is_certain: bool = False, is_late: bool = False) -> Unavailable:
        self._count("late" if is_late else "failed")
        self._late = reason if is_late else ""
        if self._breaker is not None:
            now = asyncio.get_running_loop().time()
            self._breaker.failed(now, reason=reason, is_certain=is_certain, began_at=began_at)
        return Late(PART, reason) if is_late else Unavailable(PART, reason)

    def _count(self, outcome: str, usage: _Usage | None = None) -> None:
        if self._metrics is None:
            return
        role = self._server.role
        self._metrics.model_calls.labels(role, outcome).inc()
        if usage is not None:
            cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0
            self._metrics.model_tokens.labels(role, "prompt").inc(max(0, usage.prompt_tokens))
            self._metrics.model_tokens.labels(role, "cached").inc(max(0, cached or 0))
            self._metrics.model_tokens.labels(role, "answer").inc(max(0, usage.completion_tokens))

    def _body(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Any] | None) -> bytes:
        said = [{"role": well_formed(m.role), "content": well_formed(m.content)} for m in messages]
        body: dict[str, Any] = {
            "model": self._server.model,
            "messages": said,
            "max_tokens": max_tokens,
            "temperature": self._server.temperature,
            "stream": False,
        }
        if schema is not None:
            named = {"name": SCHEMA_NAME, "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        if self._server.skips_thinking:
            body["chat_template_kwargs"] = {"enable_thinking": False}
        if self._server.priority is not None:
            body["priority"] = self._server.priority
        return msgspec.json.encode(body)

    async def _posted(self, sending: _Sending) -> tuple[int, bytes | None]:
        """Status and body, None for one that is too large.

        Sent again if the server disconnected before its answer began. It usually closed a kept-alive connection, for
        example by restarting. It may have processed the first request all the same, which is harmless, since
        completions have no side effects. An answer that breaks off later is not requested again, and the caller's time
        limit covers both attempts.
        """
        try:
            response = await self._begun(sending)
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            response = await self._begun(sending)
        try:
            if response.status_code != OK:
                return response.status_code, b""
            # raw: compressed data could expand to any size
            return OK, await body_of(response.aiter_raw(), bytes_max=ANSWER_BYTES_MAX)
        finally:
            await response.aclose()

    async def _begun(self, sending: _Sending) -> httpx.Response:
        assert self._client is not None, "open the model with `async with`"
        request = self._client.build_request(
            "POST", self._server.url, content=sending.body, extensions={"trace": sending.trace}
        )
        return await self._client.send(request, stream=True)


def _completion_of(status: int, answer: bytes | None) -> tuple[Completion, _Usage]:
    """The completion of a response. Raises `Unusable`."""
    if status != OK:
        raise Unusable(PART, f"it answered {status}")
    if answer is None:
        raise Unusable(PART, f"an answer of more than {ANSWER_BYTES_MAX} bytes")
    try:
        read = from_json(answer, _Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unusable(PART, "an answer that is no chat completion") from None
    first = read.choices[0] if read.choices else None
    if first is None or first.message.content is None:
        raise Unusable(PART, "an answer without text")
    return Completion(first.message.content, is_cut=first.finish_reason == CUT), _usage_of(read.usage)


def _usage_of(reported: object) -> _Usage:
    """Zeros if the server reports none, or something invalid: the answer is used all the same."""
    try:
        return converted(reported, _Usage)
    except msgspec.ValidationError:
        return _Usage()
