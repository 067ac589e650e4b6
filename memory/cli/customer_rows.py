"""Rows of a CRM-like file, CSV or JSON Lines, as memories. Pure: it gets lines, and which columns count."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from memory.api.times import time_of
from memory.cli.customer_columns import ColumnOptions
from memory.cli.memory_rows import MemoryRow, RowProblems
from memory.errors import BadInput
from memory.service.requests import NewMemory
from memory.typed import from_json

ROWS_MAX = 200_000  # all are checked before any is stored; a larger file can be split


Row = tuple[int, Mapping[str, str]]
"""A line number, and the values by column."""


def csv_rows(lines: Iterable[str], needed: Iterable[str], problems: RowProblems) -> Iterator[Row]:
    """The first line names the columns. Raises `BadInput` if one is missing."""
    reader = csv.DictReader(lines, strict=True)
    try:
        known = list(reader.fieldnames or ())
        if missing := [name for name in needed if name not in known]:
            have = ", ".join(known)[:400] or "none"
            raise BadInput(f"the first line has no column {missing[0]!r}; it has {have}")
        for row in reader:
            if None in row or None in row.values():
                problems.found.append(f"line {reader.line_num}: it has another number of values than the first line")
            else:
                yield reader.line_num, row
    except csv.Error as error:
        raise BadInput(f"line {reader.line_num}: this is not CSV: {error}") from None


def json_rows(lines: Iterable[str], needed: Iterable[str], problems: RowProblems) -> Iterator[Row]:
    """One object per line, with texts and numbers; empty lines are left out."""
    wanted = list(needed)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = from_json(line, dict[str, str | int | float | bool | list[object] | dict[str, object] | None])
        except msgspec.DecodeError as error:
            problems.found.append(f"line {number}: this is not a JSON object: {error}")
            continue
        missing = [name for name in wanted if name not in row]
        nested = [name for name in wanted if isinstance(row.get(name), list | dict)]
        if missing or nested:
            what = f"there is no {missing[0]!r}" if missing else f"{nested[0]!r} is neither text nor a number"
            problems.found.append(f"line {number}: {what}")
            continue
        yield number, {name: "" if row[name] is None else str(row[name]) for name in wanted}


def memory_rows(
    rows: Iterable[Row], columns: ColumnOptions, problems: RowProblems, *, leaves_out_incomplete: bool = False
) -> Iterator[MemoryRow]:
    """A memory of each row whose values are all there. Raises `BadInput` beyond `ROWS_MAX`."""
    pieces = columns.pieces()
    wanted = {name for _, name in pieces if name} | ({columns.user_column, columns.id_column} - {""})
    for count, (number, row) in enumerate(rows, start=1):
        if count > ROWS_MAX:
            raise BadInput(f"a file may have {ROWS_MAX} rows; split it")
        empty = sorted(name for name in wanted if not row[name].strip())
        if empty and leaves_out_incomplete:
            problems.incomplete += 1
            continue
        if empty:
            problems.found.append(f"line {number}: {empty[0]!r} is empty; --skip-incomplete leaves such rows out")
            continue
        try:
            yield _memory_row(f"line {number}", row, columns, pieces)
        except BadInput as error:
            problems.found.append(f"line {number}: {error}")


def _memory_row(
    where: str, row: Mapping[str, str], columns: ColumnOptions, pieces: Iterable[tuple[str, str]]
) -> MemoryRow:
    content = "".join(text + (row[name].strip() if name else "") for text, name in pieces)
    at = row[columns.created_at_column].strip() if columns.created_at_column else ""
    memory = NewMemory(
        content=content,
        memory_type=columns.memory_type.value,
        category=columns.category,
        project_id=row[columns.project_column].strip() if columns.project_column else "",
        created_at=time_of(at, columns.created_at_column) if at else None,
        importance=columns.importance,
        metadata={name: row[name] for name in columns.metadata_columns or ()},
    )
    user_id = row[columns.user_column].strip() if columns.user_column else columns.user
    identity = (
        [columns.id_column, row[columns.id_column].strip()] if columns.id_column else [content, at, memory.project_id]
    )
    digest = hashlib.sha256(msgspec.json.encode([user_id, *identity])).hexdigest()
    return MemoryRow(user_id, memory, f"bootstrap:{digest[:32]}", where)
