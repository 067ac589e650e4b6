"""A connection to Milvus: opened at first use, reopened after every loss, with a time limit for every call.

Uses pymilvus' asynchronous client, because its calls can be cancelled; a thread that waits for a frozen server cannot.
It adds what the client lacks: a time limit that includes connecting, recovery after a restart of the server (Milvus
Lite forgets which collections were loaded), and no logging during an outage. Errors of the library are never passed on
or logged, since their text may contain ids.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self, TypeAlias, TypeVar

from memory.adapters.breaker import Breaker
from memory.adapters.milvus.collections import Client, Collections
from memory.adapters.milvus.schema import Capabilities, Library, capabilities_of, partition_of
from memory.errors import BadSetting, Unavailable
from memory.model import VectorOrigin
from memory.runtime.metrics import Metrics

PART = "milvus"
CONNECT_SECONDS = 2.0
PATIENT_SECONDS = 50.0  # of a call for which nobody waits: loading or flushing a large collection takes long
CHANNEL_OPTIONS = {
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.min_reconnect_backoff_ms": 500,
    "grpc.max_reconnect_backoff_ms": 1_000,  # reconnect within seconds after the server is back
    "grpc.keepalive_time_ms": 2**31 - 1,  # with the library's default pings, Milvus Lite disconnects idle clients
}
CODE_NOT_CONNECTED = 2
# Not a bad setting: a server that is starting refuses every token.
REFUSED = "it refuses the token: MEMPROXY_MEMORY_MILVUS_TOKEN has to be user:password or an API key that it knows"
CODES_NOT_LOADED = (100, 101, 4)  # no such collection (new, or wiped), or not loaded (the server restarted)

Result = TypeVar("Result")
Opening: TypeAlias = Callable[[Collections], Awaitable[str]]
"""Prepares a connection; returns the name of the collection to use."""


@dataclass(frozen=True, slots=True)
class MilvusAccess:
    """What a server asks for. `token`: empty, or `user:password`, or an API key. `database`: empty for the default.

    `certificate_authority`: PEM file that a server with TLS (`https://`) is verified by; empty: those of the system.
    """

    token: str = field(default="", repr=False)
    database: str = ""
    certificate_authority: str = ""


@dataclass(frozen=True, slots=True)
class MilvusAddress:
    """A collection on a server. `origin`: of our vectors, which must match those in it; None: not checked."""

    uri: str
    collection: str
    dimension: int
    origin: VectorOrigin | None = None
    access: MilvusAccess = MilvusAccess()


@dataclass(slots=True)
class Link:
    """A connected client with a loaded `collection`. Closed by its last user."""

    client: Client
    can: Capabilities
    collection: str
    collections: Collections
    uses: int = 0
    is_retired: bool = False

    def partition(self, user_id: str) -> str | None:
        """The one with this user's rows; None if there are none."""
        return None if self.can.is_lite else partition_of(user_id)

    def partitions(self, user_id: str) -> list[str] | None:
        """Those to be read for this user; None for all, as for a user id of ""."""
        return [partition_of(user_id)] if user_id and not self.can.is_lite else None


class MilvusConnection:
    """Provides a prepared `Link` for each call, within a time limit."""

    def __init__(self, address: MilvusAddress, *, metrics: Metrics, opening: Opening | None = None) -> None:
        """`opening`: how a connection is prepared; None: make sure that the collection can be searched and written."""
        self._address = address
        self._opening = opening or (
            lambda collections: collections.opened(dimension=address.dimension, origin=address.origin)
        )
        self._metrics = metrics
        self._breaker = Breaker(PART)
        self._preparing = asyncio.Lock()
        self._link: Link | None = None
        self._library: Library = None

    async def aclose(self) -> None:
        link = self._link
        self._retire()
        if link is not None and not link.uses:
            await link.client.close()

    async def call(self, name: str, work: Callable[[Link], Awaitable[Result]], *, seconds: float) -> Result:
        """The result of `work`, within `seconds` including connecting. Raises `Unavailable`, `BadSetting`."""
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
            code = _code(error)
            reason = REFUSED if _is_refused(error) else f"{type(error).__name__} in {name}, code {code}"
            is_refusal = isinstance(code, int) and code != CODE_NOT_CONNECTED  # of the call, by a server that is there
            self._lost(name, reason, is_certain=not is_refusal, began_at=began_at)
        self._breaker.succeeded()
        return result

    async def call_patiently(self, name: str, work: Callable[[Link], Awaitable[Result]]) -> Result:
        """Likewise, for whom nobody waits."""
        return await self.call(name, work, seconds=PATIENT_SECONDS)

    def _lost(self, name: str, reason: str, *, is_certain: bool, began_at: float) -> NoReturn:
        self._metrics.store_errors.labels(name).inc()
        now = asyncio.get_running_loop().time()
        self._breaker.failed(now, reason=reason, is_certain=is_certain, began_at=began_at)
        if self._breaker.is_open:
            self._retire()  # a new connection recovers sooner than one that waits for a dead peer
        raise Unavailable(PART, reason) from None

    async def _answer(self, work: Callable[[Link], Awaitable[Result]]) -> Result:
        """Run `work`; once more with everything prepared again if the server does not know the collection any more."""
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
        """Stop using the connection; its last user closes it."""
        link, self._link = self._link, None
        if link is not None:
            link.is_retired = True

    async def _prepare(self) -> Link:
        """Connect, create what is missing, load. After an interruption the next attempt continues."""
        library, access = await self._imported(), self._address.access
        async with AsyncExitStack() as stack:
            client = library.AsyncMilvusClient(
                uri=self._address.uri,
                token=access.token,
                db_name=access.database,
                timeout=CONNECT_SECONDS,
                dedicated=True,  # a shared client would be closed for others as well
                grpc_options=CHANNEL_OPTIONS,
                server_pem_path=access.certificate_authority,
            )
            stack.push_async_callback(client.close)
            known = await client.list_databases(timeout=CONNECT_SECONDS) if access.database else []
            if access.database not in ("", *known):  # for which the library would ask again and again
                raise BadSetting(
                    f"the Milvus server has no database {access.database!r}: create it, or correct "
                    "memory.milvus.database"
                )
            can = capabilities_of(await client.get_server_version(timeout=CONNECT_SECONDS))
            collections = Collections(client, library, name=self._address.collection, can=can)
            collection = await self._opening(collections)
            stack.pop_all()
        return Link(client, can, collection, collections)

    async def _imported(self) -> Library:
        """The library, imported in a thread: it takes half a second, which no chat should wait for."""
        if self._library is None:
            library = await asyncio.to_thread(importlib.import_module, "pymilvus")
            logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)  # it logs expressions, which contain ids
            self._library = library
        return self._library

    def _errors(self) -> tuple[type[BaseException], ...]:
        """The library's exceptions, once it is imported."""
        if self._library is None:
            return (OSError,)
        return (OSError, self._library.MilvusException, self._library.decorators.grpc.RpcError)


class OpensConnection:
    """Holds a connection, and closes it at the end of `async with`; nothing is connected before the first call."""

    def __init__(self, connection: MilvusConnection) -> None:
        self._connection = connection
        self._patiently = connection.call_patiently

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.aclose()


def _is_refused(error: BaseException) -> bool:
    """Whether a token was missing or wrong. When connecting, the library hides the status in the cause."""
    codes = (_code(error), _code(error.__cause__ or error), _code(error.__context__ or error))
    return any(getattr(code, "name", "") == "UNAUTHENTICATED" for code in codes)


def _code(error: BaseException) -> object:
    """A number if Milvus answered, otherwise a gRPC status."""
    code = getattr(error, "code", None)
    return code() if callable(code) else code


LOOK_SECONDS = 20.0  # for the doctor, who changes nothing
TIME_TO_LIVE = "collection.ttl.seconds"


@dataclass(frozen=True, slots=True)
class Durability:
    """`is_server`: no Milvus Lite, so that its storage is not ours. `keeps_seconds`: after that the server deletes each
    row; 0: it keeps them.
    """

    is_server: bool
    keeps_seconds: int = 0


async def durability_of(address: MilvusAddress, *, metrics: Metrics) -> Durability:
    """Of the collection in use. Raises `Unavailable`, `BadSetting`."""

    async def look(link: Link) -> Durability:
        described = await link.collections.described(link.collection)
        return Durability(not link.can.is_lite, _seconds(described.get("properties") or {}))

    async with aclosing(MilvusConnection(address, metrics=metrics)) as connection:
        return await connection.call("standing", look, seconds=LOOK_SECONDS)


def _seconds(properties: dict[str, Any]) -> int:
    """Milvus states numbers as text; it counts 0 and less as no limit."""
    try:
        return max(int(properties.get(TIME_TO_LIVE) or 0), 0)
    except ValueError:
        return 0
