"""Reads the file that `memproxy export` wrote, in batches that single calls of the API can take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memory.errors import BadInput

LINES_PER_CALL_MAX = 200
BYTES_PER_CALL_MAX = 1_000_000  # of several lines; a longer one goes by itself
LINE_BYTES_MAX = 16 << 20  # as the API takes it
HEADER_BYTES_MAX = 4_096
_HEADER_KIND = b'"memproxy-export"'


@dataclass(frozen=True, slots=True)
class LineBatch:
    """Lines with their ends, empty ones too. `first_line`: the number of the first in the file."""

    first_line: int
    lines: tuple[bytes, ...]


def header_of(path: Path) -> bytes:
    """The file's first line, which every call repeats. Raises `BadInput` if it is none of an export."""
    with path.open("rb") as lines:
        header = lines.readline(HEADER_BYTES_MAX)
    if _HEADER_KIND not in header:
        raise BadInput(f"line 1 of {path.name} is not the line that an export begins with")
    return header.rstrip(b"\r\n") + b"\n"


def line_batches(path: Path) -> Iterator[LineBatch]:
    """All lines after the header. Raises `BadInput` for a line that is none of an export."""
    batch: list[bytes] = []
    first = number = 2
    size = 0
    with path.open("rb") as lines:
        next(lines, None)
        for number, line in enumerate(lines, start=2):
            whole = _checked(line, number, path.name)
            if batch and (len(batch) == LINES_PER_CALL_MAX or size + len(whole) > BYTES_PER_CALL_MAX):
                yield LineBatch(first, tuple(batch))
                batch, first, size = [], number, 0
            batch.append(whole)
            size += len(whole)
    yield LineBatch(first, tuple(batch))


def _checked(line: bytes, number: int, name: str) -> bytes:
    """The line with its end."""
    import msgspec

    if not line.strip():
        return b"\n"
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise BadInput(f"line {number} of {name} is not a JSON object: {error}") from None
    if len(line) > LINE_BYTES_MAX:
        raise BadInput(f"line {number} of {name} has more than {LINE_BYTES_MAX} bytes")
    return line if line.endswith(b"\n") else line + b"\n"
