"""Lets a chat model sit the exam beside the learning, and has it read from then on if it passes.

Until then, and if it fails, the trained reader works; log and metric say so. A model that cannot be reached is asked
again, later and later. Never delays a window, and logs no content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from memory.errors import Unavailable
from memory.learn.readers import Readers
from memory.metrics import Metrics
from memory.ports import StatementReader
from memory.ports.reading import ExamResult

RETRY_SECONDS = 5.0  # doubled each time
RETRY_SECONDS_MAX = 600.0

log = structlog.get_logger()

Sit = Callable[[], Awaitable[tuple[StatementReader, ExamResult]]]
"""The reader, and what its exam showed, now or earlier. Raises `Unavailable`."""


async def examine(readers: Readers, sit: Sit, *, metrics: Metrics) -> bool:
    """Return once the model has passed, and reads, or has failed: whether it passed."""
    pause = RETRY_SECONDS
    while True:
        try:
            reader, result = await sit()
        except Unavailable:
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_SECONDS_MAX)
        else:
            break
    metrics.reader_exam_score.set(result.score)
    if result.passed:
        readers.promote(reader)
        log.info("the model passed the exam: it reads from now on", reader=reader.name, score=result.score)
    else:
        log.warning(
            "the model failed the exam: the trained reader goes on reading",
            reader=reader.name,
            score=result.score,
            failed=list(result.failures),
        )
    return result.passed
