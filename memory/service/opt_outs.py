"""A user's opt-out: while it lasts, memory is neither used for them nor extended, by whatever way.

What is stored stays until it is forgotten, and can be listed, corrected, exported and forgotten meanwhile. Erasing a
user keeps their opt-out, as a digest of their id.
"""

from __future__ import annotations

from memory.errors import BadInput
from memory.model import Scope
from memory.ports import Clock, OptOuts, UserLedger


class OptedOut(BadInput):
    """The user does not want memory used or extended."""

    def __init__(self) -> None:
        super().__init__(
            "this user has opted out: memory is neither searched nor extended until DELETE /v1/memory/opt-out",
            code="opted_out",
        )


class OptOutService:
    """Methods raise `BadInput` or `Unavailable`."""

    def __init__(self, *, opt_outs: OptOuts, ledger: UserLedger, clock: Clock) -> None:
        self._opt_outs = opt_outs
        self._ledger = ledger
        self._clock = clock

    async def since(self, user_id: str) -> float | None:
        """When the user opted out; None if they have not."""
        return await self._opt_outs.since(user_id)

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
