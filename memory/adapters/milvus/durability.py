"""What can be seen from here of how long a Milvus keeps rows: for the doctor, who changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memory.adapters.milvus.capabilities import LITE
from memory.adapters.milvus.connection import Link, MilvusAddress, MilvusConnection
from memory.runtime.metrics import Metrics

CALL_SECONDS = 20.0
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
        return Durability(link.can is not LITE, _seconds(described.get("properties") or {}))

    connection = MilvusConnection(address, metrics=metrics)
    try:
        return await connection.call("standing", look, seconds=CALL_SECONDS)
    finally:
        await connection.close()


def _seconds(properties: dict[str, Any]) -> int:
    """Milvus states numbers as text; it counts 0 and less as no limit."""
    try:
        return max(int(properties.get(TIME_TO_LIVE) or 0), 0)
    except ValueError:
        return 0
