"""Opens what the report on held-out conversations reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memory.ports.holdouts import HoldoutRecord
from memory.processes.composition import SYSTEM_CLOCK
from memory.processes.state_parts import open_holdouts
from memory.settings import Settings


@asynccontextmanager
async def open_holdout_record(settings: Settings) -> AsyncIterator[tuple[HoldoutRecord, float]]:
    """The record, and the time. Raises `BadSetting` where nothing has been recorded, `Unavailable`."""
    async with open_holdouts(settings) as record:
        yield record, SYSTEM_CLOCK()
