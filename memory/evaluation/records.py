"""Reads records of evaluation data: one JSON object per line, plain or gzipped, with errors that name line and field.

The types of records are next to the evaluations that use them.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NotRequired, TypeAlias, TypedDict, TypeVar

from memory.errors import BadInput
from memory.typed import from_json

GZIP_MAGIC = b"\x1f\x8b"

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished records or questions, and the total."""

_Item = TypeVar("_Item")
_Shape = TypeVar("_Shape")
_Built = TypeVar("_Built")


class MessageRecord(TypedDict):
    """`content` is null or empty if an assistant only calls tools."""

    role: str
    content: str | None
    tool_calls: NotRequired[list[Any] | None]


def ignore_progress(done: int, total: int) -> None:
    """Progress that is not shown."""


def counted(items: Sequence[_Item], progress: Progress) -> Iterator[_Item]:
    """Each of them; whenever the next one is asked for, one more is finished."""
    for number, item in enumerate(items, start=1):
        yield item
        progress(number, len(items))


def file_bytes(path: Path) -> bytes:
    """The file's content, decompressed if gzipped. Raises `BadInput`."""
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw
    except (OSError, EOFError) as error:
        raise BadInput(f"{path.name} cannot be read: {error}") from error


def read_records(path: Path, shape: type[_Shape], build: Callable[[_Shape], _Built], *, kind: str) -> list[_Built]:
    """Every non-empty line as `shape` (a typed dict), converted by `build`.

    `build` raises ValueError for invalid values. Raises `BadInput` that names line and field.
    """
    built = []
    for number, line in enumerate(file_bytes(path).splitlines(), start=1):
        if line.strip():
            try:
                built.append(build(from_json(line, shape)))
            except ValueError as error:  # including msgspec's errors
                raise BadInput(f"{path.name}, line {number}: not a record of {kind}: {error}") from error
    if not built:
        raise BadInput(f"{path.name} holds no record of {kind}")
    return built


def seconds(moment: str) -> float:
    """Unix seconds of an ISO 8601 time. Raises ValueError."""
    return datetime.fromisoformat(moment).timestamp()
