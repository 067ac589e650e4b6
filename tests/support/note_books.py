"""Note books, receipts and model traits to run the contract suites on. Each call opens what one more process has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from redis_parts import RepeatingClient, shared_client

from memory.adapters.redis.background import RedisBackground
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.model_capabilities import RedisModelCapabilities
from memory.adapters.redis.notes import RedisNoteBook
from memory.adapters.redis.receipts import RedisReceipts
from memory.adapters.retention import NoteLimits, ReceiptLimits
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.model_capabilities import SqliteModelCapabilities
from memory.adapters.sqlite.notes import SqliteNoteBook
from memory.adapters.sqlite.receipts import SqliteReceipts
from memory.ports import Clock, ModelCapabilities, NoteBook, Receipts
from memory.secrets.redaction import redact


@dataclass(frozen=True, slots=True)
class Bounds:
    """Small enough to be reached in a test."""

    total_bytes: int = 1 << 20
    user_bytes: int = 1 << 20
    user_receipts: int = 100
    receipt_seconds: float = 1_000.0


@dataclass(frozen=True, slots=True)
class Books:
    """What one process holds."""

    notes: NoteBook
    receipts: Receipts
    model_capabilities: ModelCapabilities


Opener = Callable[[Path, Clock, Bounds], AbstractAsyncContextManager[Books]]


@asynccontextmanager
async def sqlite_books(folder: Path, clock: Clock, bounds: Bounds) -> AsyncIterator[Books]:
    async with SqliteDatabase(folder / "turns.sqlite") as database:
        yield Books(
            SqliteNoteBook(database, limits=NoteLimits(bounds.total_bytes, bounds.user_bytes)),
            SqliteReceipts(
                database,
                redact=redact,
                clock=clock,
                limits=ReceiptLimits(bounds.receipt_seconds, bounds.user_receipts, bounds.total_bytes),
            ),
            SqliteModelCapabilities(database, clock=clock),
        )


@asynccontextmanager
async def redis_books(
    folder: Path, clock: Clock, bounds: Bounds, *, is_cluster: bool = False, client_of: type[LogClient] = LogClient
) -> AsyncIterator[Books]:
    async with (
        shared_client(folder, is_cluster=is_cluster, client_of=client_of) as client,
        RedisBackground() as background,
    ):
        yield Books(
            RedisNoteBook(client, limits=NoteLimits(bounds.total_bytes, bounds.user_bytes)),
            RedisReceipts(
                client,
                background,
                redact=redact,
                clock=clock,
                limits=ReceiptLimits(bounds.receipt_seconds, bounds.user_receipts, bounds.total_bytes),
            ),
            RedisModelCapabilities(client, clock=clock),
        )


BOOKS: dict[str, Opener] = {  # one line per adapter: the suites run on each
    "sqlite": sqlite_books,
    "redis": redis_books,
    "redis cluster": partial(redis_books, is_cluster=True),
    "redis, batches twice": partial(redis_books, client_of=RepeatingClient),
}
