"""Embeds text over OpenAI's `/v1/embeddings`: vLLM, Text Embeddings Inference, or a compatible server.

Chats wait for it, so that calls have a short limit, their number is bounded, and a server that is down is not asked
again for a moment. Vectors of a wrong length, or that cannot be normalised, are refused.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import aiohttp
import msgspec
import numpy as np

from memory.adapters.breaker import Breaker
from memory.adapters.models.recent_vectors import CACHE_TEXTS, Prefixes, RecentVectors
from memory.adapters.well_formed import well_formed
from memory.errors import Busy, Unavailable
from memory.model import Vector
from memory.ports.paging import sized_batches
from memory.runtime.metrics import Metrics
from memory.typed import from_json

PART = "embedder"
TEXTS_IN_ONE_CALL_MAX = 256  # longer lists are split, so that no call exceeds its limit
CHARACTERS_IN_ONE_CALL_MAX = 150_000  # nor sends a megabyte at once, which would block the event loop
TEXT_CHARACTERS_MAX = 32_768  # beyond the input of any embedding model
CONNECTIONS_MAX = 64
BUSY_STATUS = (429, 503)


@dataclass(frozen=True, slots=True)
class EmbeddingServer:
    """`endpoint`: `unix:PATH` or a base URL; `model`: its name on the server. Times in seconds.

    `query_input_type`, `document_input_type`: sent as `input_type`, by which some servers distinguish them.
    """

    endpoint: str
    model: str
    dimension: int
    urgent_seconds: float = 0.1  # limit of a call inside a request
    learn_seconds: float = 30.0
    cache_texts: int = CACHE_TEXTS
    urgent_in_flight_max: int = 32
    api_key: str = ""
    prefixes: Prefixes = field(default_factory=Prefixes)
    query_input_type: str = ""
    document_input_type: str = ""

    @property
    def socket_path(self) -> str:
        """The path after `unix:`, or ""."""
        return self.endpoint.removeprefix("unix:") if self.endpoint.startswith("unix:") else ""

    @property
    def url(self) -> str:
        base = "http://embedder" if self.socket_path else self.endpoint.rstrip("/")
        if base.endswith("/embeddings"):
            return base
        return f"{base}/embeddings" if base.endswith("/v1") else f"{base}/v1/embeddings"


class _Item(msgspec.Struct):
    index: int
    embedding: str | list[float]


class _Answer(msgspec.Struct):
    data: list[_Item]


class OpenAiEmbedder:
    """`memory.ports.Embedder`. Open with `async with`. Needs no running server at its start, and reconnects."""

    def __init__(self, server: EmbeddingServer, *, metrics: Metrics) -> None:
        self._server = server
        self._metrics = metrics
        self.dimension = server.dimension
        self._breaker = Breaker(PART)
        self._recent = {
            kind: RecentVectors(texts_max=server.cache_texts, dimension=server.dimension) for kind in (True, False)
        }
        self._urgent_in_flight = 0
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        path = self._server.socket_path
        connector: aiohttp.BaseConnector = (
            aiohttp.UnixConnector(path=path, limit=CONNECTIONS_MAX)
            if path
            else aiohttp.TCPConnector(limit=CONNECTIONS_MAX)
        )
        key = {"authorization": f"Bearer {self._server.api_key}"} if self._server.api_key else {}
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"content-type": "application/json"} | key,
            timeout=aiohttp.ClientTimeout(total=None),  # our own limit covers the whole call
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        prefix = self._server.prefixes.of(as_query=as_query)
        # Servers refuse empty texts.
        wanted = [well_formed(prefix + text)[:TEXT_CHARACTERS_MAX] or " " for text in texts]
        return await self._recent[as_query].of(wanted, partial(self._fresh, is_urgent=is_urgent, as_query=as_query))

    async def _fresh(self, texts: list[str], *, is_urgent: bool, as_query: bool) -> Vector:
        ask = self._urgently if is_urgent else partial(self._ask, seconds=self._server.learn_seconds)
        batches = sized_batches(texts, len, items_max=TEXTS_IN_ONE_CALL_MAX, size_max=CHARACTERS_IN_ONE_CALL_MAX)
        return np.concatenate([await ask(batch, as_query=as_query) for batch in batches])

    async def _urgently(self, texts: list[str], *, as_query: bool) -> Vector:
        self._breaker.admit(asyncio.get_running_loop().time())
        if self._urgent_in_flight >= self._server.urgent_in_flight_max:
            self._metrics.embed_shed.inc(len(texts))
            raise Unavailable(PART, f"{self._urgent_in_flight} calls are already under way")
        self._urgent_in_flight += 1
        try:
            return await self._ask(texts, seconds=self._server.urgent_seconds, as_query=as_query)
        finally:
            self._urgent_in_flight -= 1

    async def _ask(self, texts: list[str], *, seconds: float, as_query: bool) -> Vector:
        """One call within `seconds`. Raises `Unavailable`, and `Busy` if the server is overloaded."""
        began_at = asyncio.get_running_loop().time()
        asked: dict[str, object] = {"model": self._server.model, "input": texts, "encoding_format": "base64"}
        if kind := self._server.query_input_type if as_query else self._server.document_input_type:
            asked["input_type"] = kind
        try:
            async with asyncio.timeout(seconds):
                status, answer = await self._post(msgspec.json.encode(asked))
        except TimeoutError:
            raise self._failure(f"no answer within {seconds:g} s", is_certain=False, began_at=began_at) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(type(error).__name__, is_certain=True, began_at=began_at) from None
        if status in BUSY_STATUS:
            raise Busy(PART, f"it answered {status}")  # it is up, and answers quickly
        if status != 200:
            raise self._failure(f"it answered {status}", is_certain=False, began_at=began_at)
        try:
            vectors = _vectors_of(from_json(answer, _Answer), len(texts), self.dimension)
        except (msgspec.DecodeError, RecursionError):
            raise self._failure("an answer that is not JSON", is_certain=False, began_at=began_at) from None
        except (binascii.Error, ValueError) as error:
            raise self._failure(str(error), is_certain=False, began_at=began_at) from None
        self._breaker.succeeded()
        return vectors

    async def _post(self, body: bytes) -> tuple[int, bytes]:
        """Send; again if the server closed a kept-alive connection (it was restarted)."""
        assert self._session is not None, "open the embedder with `async with`"
        try:
            async with self._session.post(self._server.url, data=body) as response:
                return response.status, await response.read()
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            async with self._session.post(self._server.url, data=body) as response:
                return response.status, await response.read()

    def _failure(self, reason: str, *, is_certain: bool, began_at: float) -> Unavailable:
        now = asyncio.get_running_loop().time()
        self._breaker.failed(now, reason=reason, is_certain=is_certain, began_at=began_at)
        return Unavailable(PART, reason)


def _vectors_of(answer: _Answer, count: int, dimension: int) -> Vector:
    """Unit vectors in the order of the texts. Raises ValueError with the reason."""
    by_index = {item.index: item.embedding for item in answer.data}
    if sorted(by_index) != list(range(count)) or len(answer.data) != count:
        raise ValueError(f"{len(answer.data)} vectors for {count} texts")
    decoded = [_decoded(by_index[index]) for index in range(count)]
    if any(vector.shape != (dimension,) for vector in decoded):
        found = next(len(vector) for vector in decoded if len(vector) != dimension)
        raise ValueError(f"vectors of {found} numbers where memory.embedding.dimension says {dimension}")
    vectors = np.stack(decoded)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)) or not np.all(lengths > 0):
        raise ValueError("a vector without direction")
    return np.asarray(vectors / lengths, dtype=np.float32)


def _decoded(embedding: str | list[float]) -> Vector:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return np.array(embedding, dtype=np.float32)
