"""Deletes what the conversation record has kept for long enough, in the background of the worker."""

from __future__ import annotations

import structlog

from memory.errors import Unavailable
from memory.ports import Clock, RecordedMessages

EXPIRED_AT_ONCE = 200  # turns, and messages, deleted in one transaction: others wait a few milliseconds

log = structlog.get_logger(__name__)


async def delete_expired(record: RecordedMessages, *, clock: Clock, keep_seconds: float) -> int:
    """Turns and messages that are older than `keep_seconds`, as far as the turn log is available. Returns how many.

    Any number of workers may do it.
    """
    before, expired = clock() - keep_seconds, 0
    try:
        while found := await record.expire(before=before, limit=EXPIRED_AT_ONCE):
            expired += found
    except Unavailable:  # the next look continues
        pass
    if expired:
        log.info("expired parts of the conversation record were deleted", count=expired)
    return expired
