"""The port of idempotency keys, by which clients repeat a call without repeating its effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """The first call with a key. `answer`: None until that call has ended well."""

    fingerprint: bytes
    claimed_at: float
    answer: tuple[str, ...] | None = None


class IdempotencyKeys(Protocol):
    """Keys of each user, durable, for a day. Raises `Unavailable`."""

    async def claim(self, user_id: str, key: str, *, fingerprint: bytes, now: float) -> KeyClaim:
        """The claim of the first call with this key, or this one; of concurrent calls, all get the same."""
        ...

    async def answered(self, user_id: str, key: str, answer: Sequence[str]) -> None:
        """Remember what the call returned. Ignored if the key is not there any more."""
        ...

    async def erase(self, user_id: str) -> None: ...
