"""`memproxy reembed` as people run it, over a data directory with Milvus Lite and memories in it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry

from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.model import Change, ChangeKind, Memory, MemoryStatus, Record, VectorOrigin
from memory.ports import MemoryFilter
from memory.runtime.metrics import Metrics

COLLECTION = "agentic_memory"
OLD = VectorOrigin("the old one", 8)
STATUSES = tuple(MemoryStatus)
SECONDS_MAX = 120.0  # of one run on busy cores


def stored(count: int, *, user_id: str = "ann") -> list[Memory]:
    """Each of its own content, status and time."""
    return [
        Memory(
            f"{user_id}-{number:05}",
            user_id,
            f"content {number} of {user_id}",
            created_at=1_700_000_000.125 + number,
            updated_at=1_700_000_000.25,
            said_at=1_699_999_999.5,
            status=STATUSES[number % len(STATUSES)],
            access_count=number,
            metadata={"number": number},
        )
        for number in range(count)
    ]


@dataclass
class Finished:
    code: int
    stdout: str
    stderr: str

    @property
    def shown(self) -> dict[str, Any]:
        assert self.code == 0, self.stderr
        return json.loads(self.stdout)


@dataclass
class Place:
    """A data directory whose Milvus Lite runs only while somebody looks into it."""

    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def configure(
        self, endpoint: str, dimension: int, *, model: str = "the new one", milvus_uri: str = "", database_url: str = ""
    ) -> None:
        memory = {
            "embedding": {"endpoint": endpoint, "model": model, "dimension": dimension},
            "milvus": {"dimension": dimension},
            "learn": {"reader": "off"},
        }
        settings = {"data_dir": str(self.data), "run_dir": str(self.folder), "memory": memory, "milvus_uri": milvus_uri}
        settings["database_url"] = database_url
        (self.folder / "memproxy.yaml").write_text(json.dumps(settings))

    async def start(self, *words: str, part: str = "reembed") -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "extproc", part, "--config", str(self.folder / "memproxy.yaml"), *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "COLUMNS": "200"},  # noqa: TID251 - the command's, not ours
        )

    async def run(self, *words: str, part: str = "reembed") -> Finished:
        process = await self.start(*words, part=part)
        async with asyncio.timeout(SECONDS_MAX):
            stdout, stderr = await process.communicate()
        assert process.returncode is not None
        return Finished(process.returncode, stdout.decode(), stderr.decode())

    @asynccontextmanager
    async def store(self, origin: VectorOrigin) -> AsyncIterator[MilvusStore]:
        """What a part that embeds so finds."""
        server = MilvusLiteServer(self.data / "milvus")
        server.start()
        try:
            address = MilvusAddress(server.uri, COLLECTION, origin.dimension, origin=origin)
            async with MilvusStore(address, metrics=Metrics(CollectorRegistry())) as store:
                yield store
        finally:
            server.kill()

    async def fill(self, *memories: Memory, origin: VectorOrigin = OLD) -> None:
        (self.data / "milvus").mkdir(parents=True, exist_ok=True)
        async with self.store(origin) as store:
            for user_id in {one.user_id for one in memories}:
                own = [Change(ChangeKind.CREATE, one) for one in memories if one.user_id == user_id]
                await store.apply(user_id, own, np.tile(np.eye(1, origin.dimension, dtype=np.float32), (len(own), 1)))

    async def records(self, origin: VectorOrigin, *users: str) -> dict[str, Record]:
        async with self.store(origin) as store:
            found = [await store.load(MemoryFilter(user, status=None, with_raw=True), limit=10_000) for user in users]
        return {record.memory.id: record for records in found for record in records}
