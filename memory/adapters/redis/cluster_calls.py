"""Calls of a Redis Cluster: which node serves a key, also while a replica takes the place of its master.

redis-py's own pipelines must not be used for this: when a node fails, they close the connections to all nodes, those
over which other calls are under way with them. These fail as well, with an AttributeError among others, and close all
again: while a master is away no call ends. Here only what failed is sent again, to the node that serves it now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from redis import exceptions
from redis.asyncio.cluster import ClusterNode, PipelineCommand, RedisCluster
from redis.cluster import PRIMARY

from memory.adapters.redis.failure_reasons import OF_A_CHANGING_CLUSTER, NodeIsFull

PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.005, 0.3  # before a call is sent again, doubling
SENT_AGAIN_MAX = 6  # over a connection that was lost: half a second, in which a server starts again

_PASSING: Final = (*OF_A_CHANGING_CLUSTER, exceptions.ConnectionError, exceptions.TimeoutError)


class ClusterCalls:
    """Of an open client, of which it uses the nodes and nothing else. Cancelled, a call leaves no answer behind."""

    def __init__(self, client: RedisCluster) -> None:
        self._client = client
        self._manager = client.nodes_manager

    async def pipelined(self, commands: Sequence[Sequence[str | bytes | int | float]]) -> list[Any]:
        """Replies in order, of one round trip where no node failed. Raises what redis-py raises, or `NodeIsFull`.

        A command whose node failed may have been executed before it is sent again.
        """
        sent = [PipelineCommand(place, *command) for place, command in enumerate(commands)]
        if not self._manager.slots_cache:
            await self._manager.initialize()
        await self._send(sent)
        for number in range(SENT_AGAIN_MAX):
            failed = [command for command in sent if isinstance(command.result, _PASSING)]
            if not failed:
                break
            await asyncio.sleep(min(PAUSE_SECONDS_MIN * 2**number, PAUSE_SECONDS_MAX))
            await self._look_again(failed)
            await self._send(failed)
        for command in sent:
            if isinstance(command.result, exceptions.OutOfMemoryError):
                raise NodeIsFull(self.node_of(_key_of(command))) from command.result
            if isinstance(command.result, Exception):
                raise command.result
        return [command.result for command in sent]

    def node_of(self, key: str | bytes) -> str:
        """The name of the node that serves it, as far as is known after a call."""
        return str(self._serving(key).name)

    async def nodes(self) -> list[ClusterNode]:
        """All servers as they are now, replicas with them."""
        await self._manager.initialize()
        return list(self._manager.nodes_cache.values())

    async def masters(self) -> list[ClusterNode]:
        return [node for node in await self.nodes() if node.server_type == PRIMARY]

    async def aclose(self) -> None:
        await self._manager.aclose()
        await self._manager.aclose("startup_nodes")

    async def _send(self, commands: Iterable[PipelineCommand]) -> None:
        """Each command has its reply, or its error, afterwards."""
        batches: dict[str, tuple[ClusterNode, list[PipelineCommand]]] = {}
        for command in commands:
            node = self._redirected(command)
            preceding = [] if node is None else [PipelineCommand(0, "ASKING")]
            node = node or self._serving(_key_of(command))
            batches.setdefault(node.name, (node, []))[1].extend([*preceding, command])
        await asyncio.gather(*(_executed(node, batch) for node, batch in batches.values()))

    def _serving(self, key: str | bytes) -> ClusterNode:
        slot = self._client.keyslot(key)
        try:
            return self._manager.get_node_from_slot(slot)
        except KeyError:  # its cache of slots is a mapping
            raise exceptions.SlotNotCoveredError(f"no node serves slot {slot}") from None

    def _redirected(self, command: PipelineCommand) -> ClusterNode | None:
        """While its slot moves to another node: that one, for this time."""
        error = command.result
        return self._manager.get_node(error.host, error.port) if isinstance(error, exceptions.AskError) else None

    async def _look_again(self, failed: Iterable[PipelineCommand]) -> None:
        """Where no node answers, what is known stays."""
        with suppress(exceptions.RedisClusterException):
            await self._manager.initialize()
        for command in failed:
            if isinstance(command.result, exceptions.MovedError):  # its node knows, others may be told later
                await self._manager.move_slot(command.result)


async def _executed(node: ClusterNode, batch: list[PipelineCommand]) -> None:
    try:
        await node.execute_pipeline(batch)
    except (exceptions.RedisError, OSError) as error:
        for command in batch:
            command.result = error


def _key_of(command: PipelineCommand) -> str | bytes:
    """All commands that we use have it first, and scripts after their number of keys."""
    return cast("str | bytes", command.args[3] if command.args[0] == "EVAL" else command.args[1])
