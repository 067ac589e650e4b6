"""What a caller stores for a user: under the user's lock, and neither after an opt-out nor after an erasure.

While an opt-out lasts, memory is neither used for the user nor extended, by whatever way; what is stored stays until it
is forgotten, and can be listed, corrected and exported meanwhile. Erasing a user keeps their opt-out, as a digest of
their id. A call takes a while: if the user is erased meanwhile, what it brings belongs to the erase epoch that ended.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memory.errors import BadInput, Conflict
from memory.model import Scope
from memory.ports import Clock, LedgerWrite, OptOuts, UserLedger

ERASED = "the user was erased while this was being done: nothing more was stored"


class OptedOut(BadInput):
    """The user does not want memory used or extended."""

    code = "opted_out"

    def __init__(self) -> None:
        super().__init__(
            "this user has opted out: memory is neither searched nor extended until DELETE /v1/memory/opt-out"
        )


class OptOutService:
    """Methods raise `BadInput` or `Unavailable`."""

    def __init__(self, *, opt_outs: OptOuts, ledger: UserLedger, clock: Clock) -> None:
        self._opt_outs = opt_outs
        self.since = opt_outs.since
        self._ledger = ledger
        self._clock = clock

    async def opt_out(self, user_id: str) -> float:
        """On return nothing more is learnt about the user. Returns since when they have opted out."""
        Scope(user_id)  # refuses invalid ids
        since = await self._opt_outs.set(user_id, at=self._clock())
        async with self._ledger.write(user_id):  # whoever was writing has finished; whoever follows looks first
            return since

    async def opt_in(self, user_id: str) -> None:
        """Memory is used and extended again, from the next request on."""
        Scope(user_id)
        await self._opt_outs.clear(user_id)

    async def refuse_opted_out(self, user_id: str) -> None:
        """Raises `OptedOut`."""
        if await self._opt_outs.since(user_id) is not None:
            raise OptedOut


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
