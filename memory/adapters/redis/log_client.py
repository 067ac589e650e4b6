"""Calls of the Redis server that holds the turn log: time limits, and every failure as `Unavailable`.

Commands of one call may concern keys on several nodes of a cluster; a script only keys of one hash tag.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.exceptions import RedisClusterException, RedisError

from memory.adapters.redis.cluster_calls import ClusterCalls
from memory.adapters.redis.failure_reasons import full_node, is_full, is_refused, reason_of
from memory.errors import Unavailable

CALL_SECONDS_MAX = 5.0  # one round trip: with `appendfsync always` a write waits for the disk
KEYS_IN_A_PAGE = 100
CALLS_AT_ONCE_MAX = 32  # of one process, each on a connection of its own; the others wait for their turn
ROOM_TRIES_MAX = 10  # of one call, on a server without memory; each may delete what gives way

Command: TypeAlias = tuple[str | bytes | int | float, ...]
Reply: TypeAlias = Any  # bytes, a number, a list of replies, or None
Result = TypeVar("Result")


class LogClient:
    """Of an open client, which may be shared. Replies are bytes.

    With `async with`, calls whose callers were cancelled have ended on exit, and the client may be closed: redis-py 8.1
    leaves a connection open that is still being made then.
    """

    def __init__(self, client: Redis | RedisCluster) -> None:
        self._client = client
        self._cluster = ClusterCalls(client) if isinstance(client, RedisCluster) else None
        self._places = asyncio.Semaphore(CALLS_AT_ONCE_MAX)
        self._delete_some: Callable[[str], Awaitable[bool]] | None = None
        self._making_room = asyncio.Lock()
        self._times_room_made = 0
        self._running: set[asyncio.Future[list[Reply]]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running:
            await asyncio.wait(self._running, timeout=CALL_SECONDS_MAX)

    async def call(self, *command: str | bytes | float) -> Reply:
        (reply,) = await self.calls([command])
        return reply

    async def calls(self, commands: Sequence[Command]) -> list[Reply]:
        """Replies in order, of one round trip; not a transaction.

        On a server that was full, or a node that failed, some are executed twice, the others between: only what may be.
        """
        if not commands:
            return []
        for _ in range(ROOM_TRIES_MAX):
            seen = self._times_room_made
            try:
                return await self._called(commands)
            except Unavailable as error:
                if not is_full(error) or not await self._has_made_room(full_node(error), since=seen):
                    raise
        return await self._called(commands)

    def give_way(self, delete_some: Callable[[str], Awaitable[bool]]) -> None:
        """`delete_some`: called where the server is full, so that what must be kept can be written; of a cluster with
        the node that is. It deletes what may be lost there, by calls that need no memory, and returns whether there was
        any.
        """
        self._delete_some = delete_some

    async def _has_made_room(self, node: str, *, since: int) -> bool:
        """Raises `Unavailable`; waits for whoever makes room already no longer than for a call."""
        try:
            async with asyncio.timeout(CALL_SECONDS_MAX), self._making_room:
                delete_some = self._delete_some if self._times_room_made == since else None
                if delete_some is not None and await delete_some(node):
                    self._times_room_made += 1
                return self._times_room_made != since
        except TimeoutError as error:
            raise Unavailable("turn_log", f"Redis is full, and made no room in {CALL_SECONDS_MAX:.0f} s") from error

    async def _called(self, commands: Sequence[Command]) -> list[Reply]:
        """A cancelled caller is free at once; the call runs to its end without it, and nobody sees what it answers.

        redis-py 8.1 must not be cancelled within a call: while it connects, it swallows that, and its client of a
        cluster keeps a connection on which the answer is still to come.
        """
        running = _in_a_task(_answered(self._in_place(partial(self._executed, commands))))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        await asyncio.wait({running})
        return running.result()

    async def _executed(self, commands: Sequence[Command]) -> list[Reply]:
        if self._cluster is not None:
            return await self._cluster.pipelined(commands)
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        return await pipeline.execute()

    async def _in_place(self, execute: Callable[[], Awaitable[Result]]) -> Result:
        async with self._places:
            return await execute()

    async def run(self, script: str, keys: Sequence[str], arguments: Sequence[str | bytes | int | float]) -> Reply:
        """Run a script as one step of the server."""
        return await self.call("EVAL", script, len(keys), *keys, *arguments)

    @property
    def is_cluster(self) -> bool:
        return self._cluster is not None

    def node_of(self, key: str) -> str:
        """The server that holds it, as far as is known after a call; empty where there is only one. Raises
        `Unavailable`: none may serve it.
        """
        try:
            return "" if self._cluster is None else self._cluster.node_of(key)
        except RedisClusterException as error:
            raise Unavailable("turn_log", f"Redis failed: {reason_of(error)}") from None

    async def keys(self) -> AsyncIterator[Sequence[bytes]]:
        """The names of all keys that are there throughout, in pages, some of them several times."""
        if self._cluster is not None:
            masters = await to_its_end(_answered(self._cluster.masters()))
            scans = [node.execute_command for node in masters]
        else:
            scans = [self._client.execute_command]
        for scan in scans:
            cursor, is_first = 0, True
            while cursor or is_first:
                cursor, keys = await to_its_end(_answered(scan("SCAN", cursor, "COUNT", KEYS_IN_A_PAGE)))
                is_first = False
                if keys:
                    yield keys

    async def of_each_node(self, *command: str) -> list[Reply]:
        """The replies of all servers, replicas of a cluster with them; None of one that refuses the command."""
        if self._cluster is None:
            asking = self._client.execute_command(*command)
            return [await to_its_end(_unless_refused(asking))]
        nodes = await to_its_end(_answered(self._cluster.nodes()))
        return [await to_its_end(_unless_refused(node.execute_command(*command))) for node in nodes]


async def _unless_refused(awaitable: Awaitable[Result]) -> Result | None:
    try:
        return await _answered(awaitable)
    except Unavailable as error:
        if is_refused(error):
            return None
        raise


async def _answered(awaitable: Awaitable[Result]) -> Result:
    """The message of an error names its kind only: an error of the library may quote a command, and so a user."""
    try:
        async with asyncio.timeout(CALL_SECONDS_MAX):
            return await awaitable
    except TimeoutError as error:
        raise Unavailable("turn_log", f"Redis did not answer within {CALL_SECONDS_MAX:.0f} s") from error
    except (RedisError, RedisClusterException, OSError) as error:  # the cluster's is no RedisError
        raise Unavailable("turn_log", f"Redis failed: {reason_of(error)}") from None


async def to_its_end(awaitable: Awaitable[Result]) -> Result:
    """Let a call run to its end although its caller is cancelled, and wait: what it did can then be undone in order."""
    running = _in_a_task(awaitable)
    try:
        await asyncio.wait({running})
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise
    return running.result()


def _in_a_task(awaitable: Awaitable[Result]) -> asyncio.Future[Result]:
    """Of its own: `asyncio.wait` ends with its caller and leaves it running, and unlike `shield` of Python 3.14 has the
    event loop log no error for which nobody waits any more.
    """
    running = asyncio.ensure_future(awaitable)  # noqa: TID251  # no group of its caller may end it
    running.add_done_callback(_retrieve)
    return running


def _retrieve(call: asyncio.Future[Result]) -> None:
    """Of a caller that is gone, nobody asks for the error; the event loop would log each, with its traceback."""
    if not call.cancelled():
        call.exception()
