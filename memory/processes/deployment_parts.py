"""What one process can know of the others: who uses the same state, what Envoy sees, whether the upstream answers.

A process that uses the state shows that it lives, by a lock on a file or a heartbeat. Envoy's admin page answers on its
own host alone: where neither it nor a filter was ever seen, nothing is known of Envoy.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from memory.adapters.http_probe import answer_of
from memory.errors import Unavailable
from memory.ports.operators import NOT_SEEN, PartHealth
from memory.processes.kept_state import RunningPart, introduced
from memory.settings import Settings
from memory.typed import from_json

LOOK_SECONDS_MAX = 2.0
OK, SERVER_ERROR = 200, 500
FILTER_CLUSTER = "memory_inject"  # as in envoy/envoy.yaml

NOT_RUNNING, SOME_MISSING, NOT_SERVING, UNAVAILABLE = "not_running", "some_missing", "not_serving", "unavailable"


class _Endpoint(msgspec.Struct):
    health_status: dict[str, object] = {}

    @property
    def is_healthy(self) -> bool:
        flags = (value for flag, value in self.health_status.items() if flag.startswith(("failed_", "pending_")))
        return not any(value is True for value in flags)


class _Cluster(msgspec.Struct):
    name: str
    host_statuses: list[_Endpoint] = []


class _Clusters(msgspec.Struct):
    cluster_statuses: list[_Cluster]


class SeenParts:
    """`memory.ports.operators.DeploymentParts`. `introductions`: of the other processes that use the state."""

    def __init__(self, settings: Settings, introductions: Callable[[], Awaitable[Sequence[str]]]) -> None:
        self._settings = settings
        self._introductions = introductions
        self._has_seen_envoy = False

    async def health(self) -> list[PartHealth]:
        parts, clusters, upstream = await asyncio.gather(self._running(), self._clusters(), self._upstream())
        filters = processes_health("filter", parts, expected=self._settings.filters)
        return [
            self._envoy(parts, is_live=clusters is not None),
            served_health(filters, healthy_filters(clusters)),
            processes_health("worker", parts, expected=self._settings.workers),
            upstream,
        ]

    async def _running(self) -> list[RunningPart] | None:
        """None if nobody can say."""
        try:
            async with asyncio.timeout(LOOK_SECONDS_MAX):
                return [one for one in introduced(await self._introductions()) if one is not None]
        except (Unavailable, TimeoutError, OSError):
            return None

    async def _clusters(self) -> bytes | None:
        """What Envoy knows of its clusters; None if it is not there, or not live."""
        admin = self._settings.envoy_admin
        if admin is None:
            return None
        socket_path = admin if isinstance(admin, Path) else None
        base = "http://localhost" if socket_path else f"http://127.0.0.1:{admin}"
        status, _ = await answer_of(f"{base}/ready", socket_path=socket_path)
        if status != OK:
            return None
        _, body = await answer_of(f"{base}/clusters?format=json", socket_path=socket_path)
        return body

    def _envoy(self, parts: Sequence[RunningPart] | None, *, is_live: bool) -> PartHealth:
        host = socket.gethostname()
        is_of_this_host = any(one.part == "filter" and one.host == host for one in parts or ())
        self._has_seen_envoy = self._has_seen_envoy or is_live or is_of_this_host
        down = NOT_RUNNING if self._has_seen_envoy else NOT_SEEN
        return PartHealth("envoy", "" if is_live else down)

    async def _upstream(self) -> PartHealth:
        """Whether it answers anything but an error of its own."""
        if not self._settings.upstream:
            return PartHealth("upstream", NOT_SEEN)
        base = self._settings.upstream.rstrip("/").removesuffix("/v1")
        status, _ = await answer_of(f"{base}/v1/models")
        return PartHealth("upstream", "" if 0 < status < SERVER_ERROR else UNAVAILABLE)


def processes_health(part: str, parts: Sequence[RunningPart] | None, *, expected: int) -> PartHealth:
    if parts is None:
        return PartHealth(part, NOT_SEEN)
    running = sum(one.part == part for one in parts)
    reason = NOT_RUNNING if not running else SOME_MISSING if running < expected else ""
    return PartHealth(part, reason, running, max(running, expected))


def served_health(filters: PartHealth, healthy: int | None) -> PartHealth:
    """A filter that runs, but does not answer Envoy's health checks, serves no chat. `healthy`: None if unknown."""
    if filters.reason or healthy is None or filters.running is None or healthy >= filters.running:
        return filters
    return PartHealth(filters.part, NOT_SERVING, healthy, filters.expected)


def healthy_filters(clusters: bytes | None) -> int | None:
    """How many filters pass Envoy's health checks; None if `/clusters?format=json` does not say."""
    try:
        found = from_json(clusters or b"", _Clusters).cluster_statuses
    except msgspec.MsgspecError:
        return None
    of_filters = [one.host_statuses for one in found if one.name == FILTER_CLUSTER]
    return sum(one.is_healthy for one in of_filters[0]) if of_filters else None
