"""Removes what the user asks to forget from the earlier wordings of memories that stay, under the user's lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memory.model import Memory, Record
from memory.model.wordings import EarlierWording, without_wordings
from memory.ports import LedgerWrite, MemoryStore
from memory.service.locked_writes import rewrite_rows

Means = Callable[[Memory], bool]
"""Whether a memory that says this is to be forgotten."""


def without_meant(records: Sequence[Record], means: Means) -> list[Record]:
    """The records without such earlier wordings; the others are the same objects."""
    return [_without_meant(record, means) for record in records]


async def forget_wordings(
    store: MemoryStore, held: LedgerWrite, user_id: str, records: Sequence[Record], means: Means
) -> list[Record]:
    """The same, written at once: to repeat it is harmless."""
    cleaned = without_meant(records, means)
    changed = [now.memory for before, now in zip(records, cleaned, strict=True) if now is not before]
    await rewrite_rows(store, held, user_id, changed, records)
    return cleaned


def _without_meant(record: Record, means: Means) -> Record:
    def is_meant(wording: EarlierWording) -> bool:
        return means(replace(record.memory, content=wording.content))

    left = without_wordings(record.memory, is_meant)
    return record if left is record.memory else replace(record, memory=left)
