"""Memories that come from elsewhere, checked as REST checks them before any is sent.

Pure: reading files and calling the API is up to the commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from memory.errors import BadInput
from memory.model import Scope
from memory.ports.paging import sized_batches
from memory.service.requests import NewMemory, given_memory

KEY = "import_key"  # of the metadata of a memory that was imported: what it was where it comes from
BATCH_ROWS_MAX = 200  # of one call
BATCH_BYTES_MAX = 900_000  # of one call's memories; the API takes 1 MiB
PROBLEMS_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A memory to store for `user_id`. `key`: the same whenever this row is read again. `where`: for people."""

    user_id: str
    memory: NewMemory
    key: str
    where: str

    def body(self) -> dict[str, Any]:
        """As `POST /v1/memory` takes it, which redacts it."""
        given = (name for name in NewMemory.__slots__ if name != "keeps_secrets")
        named = {name: value for name in given if (value := getattr(self.memory, name)) not in (None, "")}
        return {**named, "metadata": {**(self.memory.metadata or {}), KEY: self.key}}


@dataclass(slots=True)
class RowProblems:
    found: list[str] = field(default_factory=list)
    incomplete: int = 0  # rows left out because a value is missing, where that is allowed

    def refuse(self) -> None:
        """Raises `BadInput` that names the first lines, if there is any problem."""
        if self.found:
            shown = "\n  ".join(self.found[:PROBLEMS_SHOWN_MAX])
            more = (
                f"\n  and {len(self.found) - PROBLEMS_SHOWN_MAX} more" if len(self.found) > PROBLEMS_SHOWN_MAX else ""
            )
            raise BadInput(f"{len(self.found)} rows are wrong, nothing was stored:\n  {shown}{more}")


def checked(rows: Iterable[MemoryRow], problems: RowProblems, *, now: float) -> Iterator[MemoryRow]:
    """The rows that the API would accept; the others become problems."""
    for row in rows:
        try:
            body = row.body()
            given = replace(row.memory, metadata=body["metadata"])
            given_memory(Scope(row.user_id), given, now=now, memory_id=row.key)
            if len(msgspec.json.encode(body)) > BATCH_BYTES_MAX:
                raise BadInput(f"a memory may have {BATCH_BYTES_MAX} bytes as JSON")
        except BadInput as error:
            problems.found.append(f"{row.where}: {error}")
        else:
            yield row


def by_user(rows: Iterable[MemoryRow]) -> dict[str, list[MemoryRow]]:
    """The rows of each user in the order of the file; of rows with the same key the first."""
    found: dict[str, dict[str, MemoryRow]] = {}
    for row in rows:
        found.setdefault(row.user_id, {}).setdefault(row.key, row)
    return {user_id: list(of_user.values()) for user_id, of_user in found.items()}


def batches(rows: Sequence[MemoryRow]) -> Iterator[list[MemoryRow]]:
    """The rows as single calls can take them."""
    return sized_batches(
        rows, lambda row: len(msgspec.json.encode(row.body())), items_max=BATCH_ROWS_MAX, size_max=BATCH_BYTES_MAX
    )
