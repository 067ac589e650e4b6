"""What learns, as real processes: Milvus Lite, and `memproxy worker`s with the real models, to be killed.

The turn log is a file, or a server, that the test shares with them. Workers are started alone, as on a machine
that runs only them.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry
from turn_logs import a_turn

from memory.adapters.milvus.connection import MilvusAddress
from memory.adapters.milvus.store import MilvusStore
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.postgres_database import PostgresDatabase
from memory.adapters.sql.postgres_pool import PostgresAddress
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.model import Memory, TurnStatus
from memory.ports import MemoryFilter, TurnLog, UserLedger
from memory.processes.composition import SYSTEM_CLOCK
from memory.runtime.metrics import Metrics

MEMPROXY = str(Path(sys.executable).parent / "memproxy")
WARM_SECONDS_MAX = LEARNT_SECONDS_MAX = 60.0
DIMENSION = 384


@dataclass
class WorkerProcess:
    """One `memproxy worker`. `metrics_port` is 0 where it shows no metrics."""

    process: subprocess.Popen[bytes]
    warm_file: Path
    metrics_port: int = 0

    async def warm(self) -> None:
        """Return once it has reached the store, so that what comes next is learnt at full speed."""
        deadline = time.monotonic() + WARM_SECONDS_MAX
        while not self.warm_file.exists():
            assert self.process.poll() is None, f"the worker ended with {self.process.returncode}"
            assert time.monotonic() < deadline, "the worker did not come up"
            await asyncio.sleep(0.02)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


@dataclass
class LearningProcesses:
    """A folder with its store, running. Each `start_worker` adds one more worker. `database_url`: empty if the turn
    log is a file in the folder.
    """

    folder: Path
    milvus: MilvusLiteServer
    collection: str = "agentic_memory"
    database_url: str = ""
    workers: list[WorkerProcess] = field(default_factory=list)

    def apart(self, name: str, *, database_url: str = "") -> LearningProcesses:
        """The same store, with a turn log and a collection of its own."""
        folder = self.folder / name
        folder.mkdir()
        return LearningProcesses(folder, self.milvus, f"memory_{name}", database_url)

    def config(self, settings: Mapping[str, Any], *, metrics_port: int = 0) -> Path:
        """The configuration file: these parts, and the settings of the test on top (`memory` is merged)."""
        file = self.folder / "memproxy.yaml"
        shown = {"metrics_host": "127.0.0.1", "metrics_port": metrics_port} if metrics_port else {}
        parts = {
            "data_dir": str(self.folder),
            "run_dir": str(self.folder),
            "milvus_uri": self.milvus.uri,
            "database_url": self.database_url,
        }
        memory = {"milvus": {"collection": self.collection}, **settings.get("memory", {})}
        file.write_text(yaml.safe_dump({**parts, **settings, **shown, "memory": memory}))
        return file

    def start_worker(self, settings: Mapping[str, Any] | None = None, *, metrics_port: int = 0) -> WorkerProcess:
        config = self.config(settings or {}, metrics_port=metrics_port)
        with (self.folder / "worker.log").open("ab") as log:
            process = subprocess.Popen([MEMPROXY, "worker", "--config", str(config)], stdout=log, stderr=log)
        worker = WorkerProcess(process, self.folder / f"warm-{process.pid}", metrics_port)
        self.workers.append(worker)
        return worker

    def end(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()

    def log(self) -> str:
        return (self.folder / "worker.log").read_text()


@dataclass(frozen=True, slots=True)
class Records:
    """The test's own view of the turn log, the ledger and the store, as another process."""

    turn_log: TurnLog
    ledger: UserLedger
    store: MilvusStore

    async def tell(
        self, turn_id: str, user: str, text: str, *, at: float, session: str = "s1", answer: str = "Noted."
    ) -> None:
        """A finished turn."""
        turn = a_turn(turn_id, user=user, session=session, status=TurnStatus.CLOSED, at=at, text=text)
        await self.turn_log.append(replace(turn, answer=answer, answered_at=at))

    async def memories(self, user: str) -> list[Memory]:
        """Of any status."""
        found = await self.store.load(MemoryFilter(user, status=None), limit=2_000)
        return [record.memory for record in found]

    async def pending(self, user: str) -> int:
        return (await self.turn_log.backlog(user, opened_before=1e12)).pending

    async def learnt(self, *users: str) -> None:
        """Return once nothing of these users is pending. What was given up is not learnt: a dead window fails."""
        deadline = time.monotonic() + LEARNT_SECONDS_MAX
        for user in users:
            while waiting := await self.pending(user):
                assert time.monotonic() < deadline, f"{waiting} turns of {user} are still not learnt"
                await asyncio.sleep(0.05)
            given_up = (await self.turn_log.backlog(user, opened_before=1e12)).failed
            assert not given_up, f"{given_up} turns of {user} were given up: {await self._why_given_up(user)}"

    async def _why_given_up(self, user: str) -> list[str]:
        return [letter.reason for letter in await self.turn_log.dead_letters(limit=100) if letter.user_id == user]


@asynccontextmanager
async def records_of(parts: LearningProcesses) -> AsyncIterator[Records]:
    address = MilvusAddress(parts.milvus.uri, parts.collection, DIMENSION)
    url, file = parts.database_url, parts.folder / "turns.sqlite"
    async with (
        PostgresDatabase(PostgresAddress(url)) if url else SqliteDatabase(file) as database,
        MilvusStore(address, metrics=Metrics(CollectorRegistry())) as store,
    ):
        yield Records(SqlTurnLog(database, clock=SYSTEM_CLOCK), SqlUserLedger(database, clock=SYSTEM_CLOCK), store)


@contextmanager
def running_learning_processes(folder: Path) -> Iterator[LearningProcesses]:
    """The store, up. It is killed at the end."""
    (folder / "milvus").mkdir(parents=True, exist_ok=True)
    milvus = MilvusLiteServer(folder / "milvus")
    milvus.start()
    try:
        yield LearningProcesses(folder, milvus)
    finally:
        milvus.kill()
