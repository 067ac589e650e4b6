"""Stores memories that come from elsewhere through `POST /v1/memory`, so that repeating it stores nothing twice.

Each stored memory carries the key of its row in its metadata: what a user already has is read first and left out. What
the user, or upkeep, deleted meanwhile would be stored again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from memory.cli.api_client import answer_of, pages_of, stopped_by
from memory.cli.memory_rows import KEY, MemoryRow, batches, by_user
from memory.cli.options import PAGE_MEMORIES
from memory.errors import BadInput, MemproxyError


@dataclass(frozen=True, slots=True)
class Stored:
    """Counts of rows. `skipped`: stored before, or twice in the source. `opted_out`: of users who have opted out, of
    whom nothing is stored.
    """

    imported: int = 0
    skipped: int = 0
    opted_out: int = 0
    users: int = 0


def store_rows(client: httpx.Client, rows: Sequence[MemoryRow], advance: Callable[[int, int | None], None]) -> Stored:
    """Store what is not there yet. Errors say how far it came."""
    imported, opted_out, done, users = 0, 0, 0, by_user(rows)
    for user_id, of_user in users.items():
        headers = [(b"x-authz-user-id", user_id.encode())]
        known = set(_keys(client, headers))
        for batch in batches([row for row in of_user if row.key not in known]):
            try:
                answer_of(client.post("/v1/memory", json={"memories": [row.body() for row in batch]}, headers=headers))
            except MemproxyError as error:
                if isinstance(error, BadInput) and error.code == "opted_out":
                    opted_out += len(batch)
                    continue
                raise stopped_by(error, imported) from None
            imported += len(batch)
            advance(done + len(batch), len(rows))
        done += len(of_user)
        advance(done, len(rows))
    return Stored(imported, len(rows) - imported - opted_out, opted_out, len(users))


def _keys(client: httpx.Client, headers: Any) -> Iterator[str]:  # noqa: ANN401 - httpx's own type is private
    """The keys of all rows that this user has in any status."""
    asked = {"status": "all", "limit": str(PAGE_MEMORIES)}
    for page in pages_of(client, "/v1/memory", "memories", asked, headers=headers):
        yield from (str(memory["metadata"][KEY]) for memory in page["memories"] if KEY in memory["metadata"])
