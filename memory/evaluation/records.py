"""Reads records of evaluation data: one JSON object a line, plain or gzipped. Says where a file is not what it claims.

The shapes are typed dicts beside the evaluations that use them; nothing here knows what is measured.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NotRequired, TypeAlias, TypedDict, TypeVar

import msgspec

from memory.errors import BadInput

GZIP_MAGIC = b"\x1f\x8b"

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many records or questions are done, of how many."""

_Shape = TypeVar("_Shape")
_Built = TypeVar("_Built")


class MessageRecord(TypedDict):
    """`content` is null or empty where an assistant only calls tools."""

    role: str
    content: str | None
    tool_calls: NotRequired[list[Any] | None]


def ignore_progress(done: int, total: int) -> None:
    """For callers that do not watch."""


def file_bytes(path: Path) -> bytes:
    """What the file holds, gunzipped if it was gzipped. Raises `BadInput`."""
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw
    except (OSError, EOFError) as error:
        raise BadInput(f"{path.name} cannot be read: {error}") from error


def read_records(path: Path, shape: type[_Shape], build: Callable[[_Shape], _Built], *, kind: str) -> list[_Built]:
    """Every line as `shape` (a typed dict), then as what `build` makes of it; empty lines do not count.

    `build` raises ValueError where the shape is right and a value is not. Raises `BadInput` that names line and field.
    """
    built = []
    for number, line in enumerate(file_bytes(path).splitlines(), start=1):
        if line.strip():
            try:
                built.append(build(msgspec.json.decode(line, type=shape)))
            except ValueError as error:  # msgspec's own are of this kind
                raise BadInput(f"{path.name}, line {number}: not a record of {kind}: {error}") from error
    if not built:
        raise BadInput(f"{path.name} holds no record of {kind}")
    return built


def seconds(moment: str) -> float:
    """Unix seconds of an ISO 8601 time. Raises ValueError."""
    return datetime.fromisoformat(moment).timestamp()
