"""Opens what the report on held-out conversations reads: the turn log's database alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.holdout_record import SqliteHoldoutRecord
from memory.errors import BadSetting
from memory.ports.holdouts import HoldoutRecord
from memory.processes.composition import SYSTEM_CLOCK
from memory.settings.loader import Settings


@asynccontextmanager
async def open_holdout_record(settings: Settings) -> AsyncIterator[tuple[HoldoutRecord, float]]:
    """The record, and the time. Raises `BadSetting` where nothing has been recorded, `Unavailable`."""
    if not settings.turn_log_path.exists():
        raise BadSetting(f"there is no {settings.turn_log_path}: name the data_dir of the deployment")
    async with SqliteDatabase(settings.turn_log_path) as database:
        yield SqliteHoldoutRecord(database), SYSTEM_CLOCK()


__all__ = ["open_holdout_record"]
