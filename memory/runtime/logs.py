"""Logging of a part: one event per line on standard error, as text or JSON.

Standard output is left to the caller. Tracebacks never show values of variables, which may be users' text. Libraries'
log records from warnings up appear in the same format.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal

import structlog


def log_to_stderr(log_format: Literal["text", "json"]) -> None:
    """Configure this process's logging. Call once, before the first log line."""
    shared: list[Any] = [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    render: list[Any]
    if log_format == "json":
        render = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    else:
        plain = structlog.dev.plain_traceback  # rich's default prints local variables
        render = [structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, exception_formatter=plain)]
    structlog.configure(
        processors=[*shared, *render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove_meta, *render])
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
