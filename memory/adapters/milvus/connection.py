"""One connection to Milvus: made on first use, made anew after every loss, and never waited for longer than asked.

The asynchronous client of pymilvus is used because a call of it can be cancelled; a thread that waits for a frozen
server cannot. Three things it does not do by itself are done here: a time limit that also holds while connecting, the
way back after the server restarted (Milvus Lite forgets which collections were loaded), and silence while it is away.
It must never pass on an error of the library, nor put its words, which may quote an id, into a log.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, TypeVar

from memory.adapters.breaker import Breaker
from memory.adapters.milvus.collections import Client, Collections
from memory.adapters.milvus.schema import Library
from memory.errors import BadSetting, Unavailable
from memory.model import VectorOrigin
from memory.runtime.metrics import Metrics

PART = "milvus"
CONNECT_SECONDS = 2.0
CHANNEL_OPTIONS = {
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.min_reconnect_backoff_ms": 500,
    "grpc.max_reconnect_backoff_ms": 1_000,  # seconds, not minutes, after the server is back
    "grpc.keepalive_time_ms": 2**31 - 1,  # pings of the library's default make Milvus Lite hang up on an idle client
}
CODE_NOT_CONNECTED = 2
CODES_NOT_LOADED = (100, 101, 4)  # no such collection (new, or wiped), or not in memory (the server restarted)

Result = TypeVar("Result")
Opening: TypeAlias = Callable[[Collections], Awaitable[str]]
"""Makes sure of what a connection is for; gives the name of the collection that is then used."""


@dataclass(frozen=True, slots=True)
class MilvusAddress:
    """Which collection on which server. `token` is empty, or `user:password`, or an API key.

    `origin`: what our vectors are made with, so that they join no others; None: of whatever origin those there are.
    """

    uri: str
    collection: str
    dimension: int
    token: str = ""
    origin: VectorOrigin | None = None


@dataclass(slots=True)
class Link:
    """A connected client whose `collection` is there and loaded. Closed by the last one who uses it."""

    client: Client
    is_lite: bool
    collection: str
    collections: Collections
    uses: int = 0
    is_retired: bool = False


class MilvusConnection:
    """Hands a prepared `Link` to whoever has something to ask, within a time limit."""

    def __init__(self, address: MilvusAddress, *, metrics: Metrics, opening: Opening | None = None) -> None:
        """`opening`: what is made sure of; None: that the collection can be searched and written."""
        self._address = address
        self._opening = opening or self._open_collection
        self._metrics = metrics
        self._breaker = Breaker(PART)
        self._preparing = asyncio.Lock()
        self._link: Link | None = None
        self._library: Library = None

    async def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.is_retired = True
            if not link.uses:
                await link.client.close()

    async def call(self, name: str, work: Callable[[Link], Awaitable[Result]], *, seconds: float) -> Result:
        """What `work` gives, within `seconds`, connecting included. Raises `Unavailable`, `BadSetting`."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        self._breaker.admit(began_at)
        try:
            with self._metrics.store_seconds.labels(name).time():
                async with asyncio.timeout(seconds):
                    result = await self._answer(work)
        except BadSetting as error:
            self._breaker.failed(loop.time(), reason=str(error), is_certain=True)
            raise
        except TimeoutError:
            self._lost(name, f"no answer to {name} within {seconds:g} s", is_certain=False, began_at=began_at)
        except self._errors() as error:
            reason = f"{type(error).__name__} in {name}, code {_code(error)}"
            self._lost(name, reason, is_certain=_is_connection(error), began_at=began_at)
        self._breaker.succeeded()
        return result

    def _lost(self, name: str, reason: str, *, is_certain: bool, began_at: float) -> NoReturn:
        self._metrics.store_errors.labels(name).inc()
        now = asyncio.get_running_loop().time()
        self._breaker.failed(now, reason=reason, is_certain=is_certain, began_at=began_at)
        if self._breaker.is_open:
            self._retire()  # a new connection finds its way sooner than one that waits for a dead peer
        raise Unavailable(PART, reason) from None

    async def _answer(self, work: Callable[[Link], Awaitable[Result]]) -> Result:
        """Ask; once more with everything made anew if the server no longer knows the collection."""
        try:
            async with self._borrowed() as link:
                return await work(link)
        except self._errors() as error:
            if _code(error) not in CODES_NOT_LOADED:
                raise
        self._retire()
        async with self._borrowed() as link:
            return await work(link)

    @asynccontextmanager
    async def _borrowed(self) -> AsyncIterator[Link]:
        async with self._preparing:
            if self._link is None:
                self._link = await self._prepare()
            link = self._link
        link.uses += 1
        try:
            yield link
        finally:
            link.uses -= 1
            if link.is_retired and not link.uses:
                await link.client.close()

    def _retire(self) -> None:
        """Let go of the connection; whoever still uses it closes it."""
        link, self._link = self._link, None
        if link is not None:
            link.is_retired = True

    async def _prepare(self) -> Link:
        """Connect, create what is missing, load. Interrupted at any point, the next attempt goes on from there."""
        library = await self._imported()
        async with AsyncExitStack() as stack:
            client = library.AsyncMilvusClient(
                uri=self._address.uri,
                token=self._address.token,
                timeout=CONNECT_SECONDS,
                dedicated=True,  # a shared one would be closed for others as well
                grpc_options=CHANNEL_OPTIONS,
            )
            stack.push_async_callback(client.close)
            is_lite = "lite" in (await client.get_server_version(timeout=CONNECT_SECONDS)).lower()
            collections = Collections(client, library, name=self._address.collection, is_lite=is_lite)
            collection = await self._opening(collections)
            stack.pop_all()
        return Link(client, is_lite, collection, collections)

    async def _open_collection(self, collections: Collections) -> str:
        return await collections.opened(dimension=self._address.dimension, origin=self._address.origin)

    async def _imported(self) -> Library:
        """The library, imported in a thread: it takes half a second, which no chat should wait for."""
        if self._library is None:
            library = await asyncio.to_thread(importlib.import_module, "pymilvus")
            logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)  # it logs expressions, ids and all
            self._library = library
        return self._library

    def _errors(self) -> tuple[type[BaseException], ...]:
        """What the library raises, once it is imported."""
        if self._library is None:
            return (OSError,)
        return (OSError, self._library.MilvusException, self._library.decorators.grpc.RpcError)


def _code(error: BaseException) -> object:
    """A number where Milvus answered, a gRPC status where nobody did."""
    code = getattr(error, "code", None)
    return code() if callable(code) else code


def _is_connection(error: BaseException) -> bool:
    """Whether nobody answered, as opposed to a server that said no."""
    code = _code(error)
    return not isinstance(code, int) or code == CODE_NOT_CONNECTED
