"""What a caller stores for a user: under the user's lock, and neither after an opt-out nor after an erasure.

A call takes a while: it embeds, it removes secrets, it waits for a lock. If the user is erased meanwhile, what the call
brings belongs to the erase epoch that ended.
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
class EraseEpoch:
    """The erase epoch of a user in which a call began: how often they were erased before."""

    user_id: str
    number: int


class UserWrites:
    """Methods raise `OptedOut`, `Unavailable` or `Conflict`."""

    def __init__(self, ledger: UserLedger, opt_outs: OptOutService) -> None:
        self._ledger = ledger
        self._opt_outs = opt_outs

    async def begin(self, user_id: str) -> EraseEpoch:
        """Call this first, before anything that takes time."""
        await self._opt_outs.refuse_opted_out(user_id)
        return await erase_epoch_of(self._ledger, user_id)

    @asynccontextmanager
    async def lock(self, epoch: EraseEpoch) -> AsyncIterator[LedgerWrite]:
        """The user's lock; whoever opts out or erases waits for it."""
        async with self._ledger.write(epoch.user_id) as held:
            await self._opt_outs.refuse_opted_out(epoch.user_id)
            await refuse_erased(self._ledger, epoch)
            yield held


async def erase_epoch_of(ledger: UserLedger, user_id: str) -> EraseEpoch:
    """For calls that an opt-out does not concern."""
    return EraseEpoch(user_id, await ledger.erase_epoch(user_id))


async def refuse_erased(ledger: UserLedger, epoch: EraseEpoch) -> None:
    """Under the user's lock. Raises `Conflict`."""
    if await ledger.erase_epoch(epoch.user_id) != epoch.number:
        raise Conflict(ERASED)
