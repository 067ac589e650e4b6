"""The endpoint that says who is calling."""

from __future__ import annotations

import msgspec
from litestar import Controller, get

from memory.api.operations import READS_PROJECTS, TheCaller, operation


class CallerView(msgspec.Struct, frozen=True):
    """`user_id`: as calls and lists of members name it, without a tenant; `shown_as`: as memories show it, with one.
    `projects`: the only ones that may be used; null: all.
    """

    user_id: str
    shown_as: str
    projects: list[str] | None


class CallerController(Controller):
    path = "/v1/memory/caller"
    tags = ("callers",)

    @operation(get, "/", "getCaller", allowed=READS_PROJECTS)
    async def show(self, caller: TheCaller) -> CallerView:
        """Whose memories the calls of this caller concern."""
        projects = None if caller.projects is None else list(caller.projects)
        return CallerView(caller.claimed_id or caller.user_id, caller.user_id, projects)
