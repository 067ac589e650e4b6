"""Rewrites the files of the Redis servers, which keep what was deleted until then.

The append-only file holds every command since its last rewriting, and a snapshot is as old as its time. In memory, a
server keeps the latest slow commands, which are emptied. Replicas that are no part of a cluster have files of their
own, of which nothing is known here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.server_check import configured
from memory.errors import Unavailable

REWRITE_SECONDS_MAX = 600.0
PAUSE_SECONDS = 0.05
APPEND_ONLY, SNAPSHOT = "append-only file", "snapshot"
_LOGS = (("SLOWLOG", "RESET"), ("COMMANDLOG", "RESET", "large-request"), ("COMMANDLOG", "RESET", "large-reply"))
_BUSY = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")


class RedisDeletedKeys:
    """`memory.ports.erasures.FileRewriting`."""

    def __init__(self, client: LogClient) -> None:
        self._client = client

    async def refuse_in_vain(self) -> None:
        """Whether a server refuses is known only when it is asked to."""

    async def rewrite(self) -> None:
        """Whoever asks a server that refuses gets `Unavailable`: then only its operator can rewrite its files."""
        try:
            async with asyncio.timeout(REWRITE_SECONDS_MAX):
                for command in _LOGS:
                    await self._client.of_each_node(*command)  # who looks for the rest sees whether one was refused
                await self._rewritten("BGREWRITEAOF", "aof_last_bgrewrite_status", APPEND_ONLY)
                settings = await configured(self._client, "save")
                if any(node is None or node.get("save") for node in settings):
                    await self._rewritten("BGSAVE", "rdb_last_bgsave_status", SNAPSHOT)
        except TimeoutError:
            reason = f"Redis did not rewrite its files within {REWRITE_SECONDS_MAX:.0f} s"
            raise Unavailable("turn_log", reason) from None

    async def _rewritten(self, command: str, status: str, file: str) -> None:
        """One that runs already began before the deletion, maybe: another has to follow it."""
        await self._idle()
        if None in await self._client.of_each_node(command):
            raise Unavailable("turn_log", f"Redis refuses {command}: its {file} keeps what was deleted")
        nodes = await self._idle()
        if any(node.get(status) != "ok" for node in nodes):
            raise Unavailable("turn_log", f"Redis could not rewrite its {file}: see its log")

    async def _idle(self) -> list[Mapping[str, object]]:
        """What the servers say of their files once none of them is being written."""
        while True:
            nodes = await self._client.of_each_node("INFO", "persistence")
            if None in nodes:
                raise Unavailable("turn_log", "Redis refuses INFO: nobody can know when its files are rewritten")
            if not any(node.get(name) for node in nodes for name in _BUSY):
                return nodes
            await asyncio.sleep(PAUSE_SECONDS)
