"""Runs the exam of a chat model in the background, and lets the model read windows from then on if it passes.

Until then, and if it fails, the trained reader works; log and metric report it. An unreachable model is asked again
with growing pauses; one that answers too slowly is asked a few times and then counts as failed. Never delays a window,
and logs no content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from memory.errors import Late, Unavailable
from memory.learn.readers import Readers
from memory.ports import StatementReader
from memory.ports.reading import ExamResult
from memory.runtime.metrics import Metrics

RETRY_SECONDS = 5.0  # doubled each time
RETRY_SECONDS_MAX = 600.0
LATE_TRIES_MAX = 6  # with the pauses between them some minutes, in which a server loads its model
TOO_LATE = "no answer in time"

log = structlog.get_logger()

Sit = Callable[[], Awaitable[tuple[StatementReader, ExamResult]]]
"""Returns the reader and its exam result, new or stored. Raises `Unavailable`."""


async def examine(readers: Readers, sit: Sit, *, metrics: Metrics) -> bool:
    """Return once the model has passed (it then reads windows) or failed; whether it passed."""
    pause, late = RETRY_SECONDS, 0
    while True:
        try:
            reader, result = await sit()
            break
        except Unavailable as error:
            late += isinstance(error, Late)
        if late >= LATE_TRIES_MAX:
            metrics.reader_exam_score.set(0.0)
            log.warning("the model failed the exam: the trained reader goes on reading", failed=[TOO_LATE], tries=late)
            return False
        await asyncio.sleep(pause)
        pause = min(2 * pause, RETRY_SECONDS_MAX)
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
