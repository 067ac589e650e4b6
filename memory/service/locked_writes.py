"""Writes a user's rows under the user's lock: the only way to change memories.

A process that was slow or suspended has to notice before a row is sent: another one may hold the lock by then and have
read what would be overwritten. Decides nothing about the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from memory.model import Change, ChangeKind, Memory, MemoryStatus, Record, Vector, statement_key
from memory.model.wordings import EarlierWording, without_wordings
from memory.ports import LedgerWrite, MemoryFilter, MemoryStore

Means = Callable[[Memory], bool]
"""Whether a memory that says this is to be forgotten."""


async def write_rows(
    store: MemoryStore, held: LedgerWrite, user_id: str, changes: Sequence[Change], vectors: Vector
) -> None:
    """Announce the ids, renew the lock, and write while it is held. `vectors` has shape `(len(changes), dimension)`.

    Raises `Conflict` if the lock was lost: nothing was sent, or, of more than a thousand rows, not all.
    """
    if not changes:
        return
    # raw words are in no working set: readers need not fetch them, and nothing that they hold has changed
    if touched := [change.memory.id for change in changes if change.memory.status is not MemoryStatus.RAW]:
        held.touch(touched)
    await held.renew()
    await store.apply(user_id, changes, vectors, before_each=held.check_term)


async def rewrite_rows(
    store: MemoryStore, held: LedgerWrite, user_id: str, rows: Sequence[Memory], records: Sequence[Record]
) -> None:
    """Write these rows at once with the vectors that they have; what is not among the records is gone, and stays so."""
    vectors = {record.memory.id: record.vector for record in records}
    changes = [Change(ChangeKind.UPDATE, row) for row in rows if row.id in vectors]
    if changes:
        await write_rows(store, held, user_id, changes, np.stack([vectors[one.memory.id] for one in changes]))


async def same_or_new(store: MemoryStore, memory: Memory) -> Memory:
    """The active memory that says the same, in the same project; the given one if there is none."""
    where = MemoryFilter(memory.user_id, memory.project_id, exact_project=True)
    same = await store.same_statement(where, statement_key(memory.content))
    return memory if same is None else same.memory


def without_meant(records: Sequence[Record], means: Means) -> list[Record]:
    """The records without earlier wordings that are to be forgotten; the others are the same objects."""

    def left_of(record: Record) -> Record:
        def is_meant(wording: EarlierWording) -> bool:
            return means(replace(record.memory, content=wording.content))

        left = without_wordings(record.memory, is_meant)
        return record if left is record.memory else replace(record, memory=left)

    return list(map(left_of, records))


async def forget_wordings(
    store: MemoryStore, held: LedgerWrite, user_id: str, records: Sequence[Record], means: Means
) -> list[Record]:
    """The same, written at once: to repeat it is harmless."""
    cleaned = without_meant(records, means)
    changed = [now.memory for before, now in zip(records, cleaned, strict=True) if now is not before]
    await rewrite_rows(store, held, user_id, changed, records)
    return cleaned
