"""Log lines of a part: on standard error, one event per line, as text or JSON.

Standard output belongs to whoever started the part. No traceback shows the values of variables: they hold what users
said. A library's own logging comes out from warnings up, in the same shape.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal

import structlog


def log_to_stderr(log_format: Literal["text", "json"]) -> None:
    """Set up this process's logging; once, before the first line."""
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: list[Any]
    if log_format == "json":
        render = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    else:
        plain = structlog.dev.plain_traceback  # the default one, of rich, prints local variables
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
