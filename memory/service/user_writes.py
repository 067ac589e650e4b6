"""What a caller stores for a user: under the user's lock, and neither after an opt-out nor in another life.

A call takes a while: it embeds, it removes secrets, it waits for a lock. If the user is erased meanwhile, what the call
brings belongs to the life that ended.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memory.errors import Conflict
from memory.ports import LedgerWrite, UserLedger
from memory.service.opt_outs import OptOutService

ERASED = "the user was erased while this was being done: nothing more was stored"


@dataclass(frozen=True, slots=True)
class UserLife:
    """The life of a user in which a call began."""

    user_id: str
    number: int


class UserWrites:
    """Methods raise `OptedOut`, `Unavailable` or `Conflict`."""

    def __init__(self, ledger: UserLedger, opt_outs: OptOutService) -> None:
        self._ledger = ledger
        self._opt_outs = opt_outs

    async def begin(self, user_id: str) -> UserLife:
        """Call this first, before anything that takes time."""
        await self._opt_outs.refuse_opted_out(user_id)
        return await life_of(self._ledger, user_id)

    @asynccontextmanager
    async def lock(self, life: UserLife) -> AsyncIterator[LedgerWrite]:
        """The user's lock; whoever opts out or erases waits for it."""
        async with self._ledger.write(life.user_id) as held:
            await self._opt_outs.refuse_opted_out(life.user_id)
            await refuse_ended(self._ledger, life)
            yield held


async def life_of(ledger: UserLedger, user_id: str) -> UserLife:
    """For calls that an opt-out does not concern."""
    return UserLife(user_id, await ledger.life(user_id))


async def refuse_ended(ledger: UserLedger, life: UserLife) -> None:
    """Under the user's lock. Raises `Conflict`."""
    if await ledger.life(life.user_id) != life.number:
        raise Conflict(ERASED)


__all__ = ["UserLife", "UserWrites", "life_of", "refuse_ended"]
