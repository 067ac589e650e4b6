"""Writes the output of every part to our standard error, line by line, prefixed with the part's name.

Writing happens in a thread with a bounded queue, so that a reader that does not read cannot stop the product: beyond
the bound, lines are dropped and counted. Never writes to standard output, which is reserved for the ready line.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
from collections import deque
from typing import Any

import structlog
from structlog.typing import FilteringBoundLogger

QUEUE_LINES_MAX = 10_000  # about 2 MB: a minute of a verbose start
LINE_BYTES_MAX = 16_384  # longer ones are truncated; none of ours are
TAIL_LINES = 20  # of each part, shown if it does not start
FLUSH_SECONDS = 1.0  # at exit, for a slow reader


class LogLines:
    """The only writer to standard error. Thread-safe; never blocks its callers."""

    def __init__(self, descriptor: int, *, as_json: bool) -> None:
        self._descriptor = descriptor
        self._as_json = as_json
        self._lines: queue.Queue[bytes | None] = queue.Queue(QUEUE_LINES_MAX)
        self._dropped = 0
        self._writer = threading.Thread(target=self._write_all, name="log-lines", daemon=True)
        self._writer.start()

    def write(self, part: str, line: str) -> None:
        text = _as_json(part, line) if self._as_json else f"{part:<9} | {line}"
        try:
            self._lines.put_nowait(text.encode("utf-8", "backslashreplace") + b"\n")
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Write the queued lines, for a moment at most."""
        try:
            self._lines.put(None, timeout=FLUSH_SECONDS)
        except queue.Full:
            return
        self._writer.join(FLUSH_SECONDS)

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                line = b"(%d lines dropped: nobody read them)\n%b" % (dropped, line)
            try:
                os.write(self._descriptor, line)
            except OSError:
                continue  # the reader is gone; the product continues


def _as_json(part: str, line: str) -> str:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        said = {"event": line}
    return json.dumps({"part": part} | said, ensure_ascii=False)


class PartLines:
    """Splits the output of one part into lines. `tail`: the last ones, for the message of a failed start."""

    def __init__(self, part: str, log: LogLines) -> None:
        self._part = part
        self._log = log
        self._rest = b""
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)

    def feed(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._say(line)

    def end(self) -> None:
        """The part has ended: output without a final line end counts as a line."""
        rest, self._rest = self._rest, b""
        self._say(rest)

    def _say(self, line: bytes) -> None:
        text = line[:LINE_BYTES_MAX].decode("utf-8", "replace").rstrip()
        if text:
            self.tail.append(text)
            self._log.write(self._part, text)


class _Emit:
    def __init__(self, log: LogLines) -> None:
        self._log = log

    def msg(self, line: str) -> None:
        self._log.write("up", line)

    debug = info = warning = error = critical = msg


def supervisor_logger(log: LogLines, *, as_json: bool) -> FilteringBoundLogger:
    """A structlog logger that writes through the same queue as the parts."""
    processors: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0),
    ]
    logger: FilteringBoundLogger = structlog.wrap_logger(
        _Emit(log), processors=processors, wrapper_class=structlog.make_filtering_bound_logger(logging.INFO)
    )
    return logger
