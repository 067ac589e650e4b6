"""The note book on Redis: past notes by conversation key, found by all filters. The limits are those of SQLite."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import msgspec

from memory.adapters.redis import log_keys
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.shelves import NewValue, Shelf, ShelfLimits
from memory.adapters.retention import (
    DEFAULT_NOTE_LIMITS,
    NOTE_BYTES_MAX,
    NOTE_DROP_SECONDS,
    NOTE_KEYS_ASKED_MAX,
    NoteLimits,
)
from memory.model import PastNote


class RedisNoteBook:
    """`memory.ports.NoteBook`. A note is found by every process when `keep` returns."""

    def __init__(self, client: LogClient, *, limits: NoteLimits = DEFAULT_NOTE_LIMITS) -> None:
        kept = ShelfLimits(
            weight_max=limits.total_bytes_max, user_bytes_max=limits.user_bytes_max, mark_seconds=NOTE_DROP_SECONDS
        )
        self._shelf = Shelf(client, log_keys.NOTES, kept)

    async def find(self, user_id: str, keys: Sequence[str]) -> dict[str, PastNote]:
        keys = keys[-NOTE_KEYS_ASKED_MAX:]
        found = await self._shelf.find(user_id, keys)
        return {key: _NOTES.decode(note) for key, note in zip(keys, found, strict=True) if note is not None}

    async def keep(self, user_id: str, key: str, note: PastNote, *, made_at: float) -> None:
        encoded = _ENCODER.encode(replace(note, made_at=made_at))
        if len(encoded) <= NOTE_BYTES_MAX:
            await self._shelf.put(user_id, NewValue(key, encoded, made_at, len(encoded), tuple(note.memory_ids)))

    async def drop(self, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        if not memory_ids:
            await self._shelf.erase(user_id, at=now)
            return
        dropped = frozenset(memory_ids)
        await self._shelf.mark(user_id, sorted(dropped), at=now)  # first: what is put later is refused
        shelved = await self._shelf.all(user_id)
        holding = [one for one in shelved if not dropped.isdisjoint(_NOTES.decode(one.value).memory_ids)]
        await self._shelf.remove(user_id, holding)


_ENCODER = msgspec.msgpack.Encoder()
_NOTES = msgspec.msgpack.Decoder(PastNote)
