"""Rows of a user, written under the user's lock: the one way to change memories.

Whoever was slow, or was frozen and woke up, must find out before a row leaves this process: somebody else may hold the
lock by then and have read what this one is about to overwrite. Decides nothing about the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.model import Change, Vector
from memory.ports import LedgerWrite, MemoryStore


async def write_rows(
    store: MemoryStore, held: LedgerWrite, user_id: str, changes: Sequence[Change], vectors: Vector
) -> None:
    """Name them, renew the lock, and send them while it is ours. `vectors` has shape `(len(changes), dimension)`.

    Raises `Conflict` where the lock was lost: then nothing was sent, or, of more than a thousand rows, not all.
    """
    if not changes:
        return
    held.touch([change.memory.id for change in changes])
    await held.renew()
    await store.apply(user_id, changes, vectors, before_each=held.check_term)


__all__ = ["write_rows"]
