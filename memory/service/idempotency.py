"""Calls that a client may repeat: the same idempotency key and the same request have one effect and one answer.

The ids of a call with a key follow from the key, so that a call which was interrupted is repeated without a second
effect. A key outlives what was stored with it: repeating the call never restores what was forgotten meanwhile.
"""

from __future__ import annotations

import hashlib
import itertools
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from memory.errors import BadInput
from memory.model import is_valid_id
from memory.ports import Clock
from memory.ports.requests import IdempotencyKeys

NewId: TypeAlias = Callable[[], str]

_IDS = uuid.UUID("0f0b9c52-6a3e-4d0a-9a51-5d1f6d1d7c27")


class KeyReused(BadInput):
    """The key belongs to another request of this user."""

    code = "idempotency_key_reused"

    def __init__(self) -> None:
        super().__init__("this Idempotency-Key was used for another request: send a new key")


class RepeatableCalls:
    """Methods raise `BadInput` or `Unavailable`."""

    def __init__(self, keys: IdempotencyKeys, *, clock: Clock, new_id: NewId) -> None:
        self._keys = keys
        self._clock = clock
        self._new_id = new_id

    async def once(
        self, user_id: str, key: str, request: object, work: Callable[[NewId], Awaitable[Sequence[str]]]
    ) -> list[str]:
        """What `work` returns, or returned for the first call with this key. "": no key. `request`: frozen values."""
        if not key:
            return list(await work(self._new_id))
        if not is_valid_id(key):
            raise BadInput("an Idempotency-Key has 1-256 bytes of UTF-8 without control characters")
        fingerprint = hashlib.sha256(repr((user_id, key, request)).encode("utf-8", "surrogatepass")).digest()
        claim = await self._keys.claim(user_id, key, fingerprint=fingerprint, now=self._clock())
        if claim.fingerprint != fingerprint:
            raise KeyReused
        if claim.answer is not None:
            return list(claim.answer)
        numbers = itertools.count()
        named = repr((user_id, key, claim.claimed_at, fingerprint))
        answer = list(await work(lambda: str(uuid.uuid5(_IDS, f"{named}{next(numbers)}"))))
        await self._keys.answered(user_id, key, answer)
        return answer
