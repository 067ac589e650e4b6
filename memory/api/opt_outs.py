"""The user's switch for all of memory."""

from __future__ import annotations

import msgspec
from litestar import Controller, delete, get, put

from memory.api.operations import READS, WRITES, TheCaller, TheLibrary, operation
from memory.api.times import TimeText, time_text_or_none


class OptOutView(msgspec.Struct, frozen=True):
    """The time is null for users who have not opted out."""

    opted_out: bool
    opted_out_since: TimeText | None


class OptOutController(Controller):
    path = "/v1/memory/opt-out"
    tags = ("opt-out",)

    @operation(get, "", "getOptOut", allowed=READS)
    async def show(self, library: TheLibrary, caller: TheCaller) -> OptOutView:
        """Whether the user has opted out: then nothing of theirs is recalled, recorded or learnt."""
        return opt_out_view(await library.opt_outs.since(caller.user_id))

    @operation(put, "", "optOut", allowed=WRITES)
    async def opt_out(self, library: TheLibrary, caller: TheCaller) -> OptOutView:
        """Opts out. What is stored stays until it is forgotten."""
        return opt_out_view(await library.opt_outs.opt_out(caller.user_id))

    @operation(delete, "", "optIn", allowed=WRITES, status_code=200)
    async def opt_in(self, library: TheLibrary, caller: TheCaller) -> OptOutView:
        """Opts in again."""
        await library.opt_outs.opt_in(caller.user_id)
        return opt_out_view(None)


def opt_out_view(since: float | None) -> OptOutView:
    return OptOutView(since is not None, time_text_or_none(since))
