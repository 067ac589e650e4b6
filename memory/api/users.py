"""Users as a whole: who calls, their switch for all of memory, and erasing everything of a user, or of one project of
theirs: by the user, or by an operator who names the user.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from litestar import Controller, delete, get, post, put
from litestar.params import FromQuery, JSONBody, QueryParameter

from memory.api.guards import bounded_project, refuse_without_bounds
from memory.api.identity import Caller
from memory.api.operations import (
    OPERATES,
    READS,
    READS_PROJECTS,
    WRITES,
    WRITES_PROJECTS,
    PathId,
    TheCall,
    TheLibrary,
    operation,
)
from memory.api.times import TimeText, time_text_or_none
from memory.api.views import view_of
from memory.errors import BadInput
from memory.model.erasures import ErasureRecord

ERASURES_MAX = 500
ErasureLimit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=ERASURES_MAX)]


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
    async def show(self, call: TheCall) -> CallerView:
        """Whose memories the calls of this caller concern."""
        projects = None if call.caller.projects is None else list(call.caller.projects)
        return CallerView(call.caller.claimed_id or call.user_id, call.user_id, projects)


class OptOutView(msgspec.Struct, frozen=True):
    """The time is null for users who have not opted out."""

    opted_out: bool
    opted_out_since: TimeText | None


class OptOutController(Controller):
    path = "/v1/memory/opt-out"
    tags = ("opt-out",)

    @operation(get, "", "getOptOut", allowed=READS)
    async def show(self, call: TheCall) -> OptOutView:
        """Whether the user has opted out: then nothing of theirs is recalled, recorded or learnt."""
        return opt_out_view(await call.library.opt_outs.since(call.user_id))

    @operation(put, "", "optOut", allowed=WRITES)
    async def opt_out(self, call: TheCall) -> OptOutView:
        """Opts out. What is stored stays until it is forgotten."""
        return opt_out_view(await call.library.opt_outs.opt_out(call.user_id))

    @operation(delete, "", "optIn", allowed=WRITES)
    async def opt_in(self, call: TheCall) -> OptOutView:
        """Opts in again."""
        await call.library.opt_outs.opt_in(call.user_id)
        return opt_out_view(None)


def opt_out_view(since: float | None) -> OptOutView:
    return OptOutView(since is not None, time_text_or_none(since))


class ErasureView(msgspec.Struct, frozen=True):
    """`deleted`: no call finds anything, files may hold deleted bytes; `rewritten`: they do not."""

    erasure_id: str
    state: Literal["deleted", "rewritten"]
    asked_at: TimeText
    deleted_at: TimeText
    deleted: dict[str, int]
    rewritten_at: TimeText | None


class EverythingController(Controller):
    path = "/v1/memory/everything"
    tags = ("erasures",)

    @operation(delete, "", "eraseEverything", allowed=WRITES_PROJECTS, errors=(409,), status_code=202)
    async def erase(self, call: TheCall, project_id: FromQuery[str | None] = None) -> ErasureView:
        """Erases all of the user, or of one project of theirs with what they shared in it. On return no call finds
        anything; files are rewritten soon after.
        """
        return erasure_view(await call.library.erase(call.user_id, _named_project(call.caller, project_id)))


class ErasuresController(Controller):
    path = "/v1/memory/erasures"
    tags = ("erasures",)

    @operation(get, "/{id:str}", "getErasure", allowed=READS_PROJECTS, errors=(404,))
    async def show(self, call: TheCall, path_id: PathId, project_id: FromQuery[str | None] = None) -> ErasureView:
        """How far an erasure is. A project has to be named again."""
        project = _named_project(call.caller, project_id)
        return erasure_view(await call.library.erasures.found(call.user_id, path_id, project_id=project))


class ErasuresView(msgspec.Struct, frozen=True):
    """Latest first. Whose they are is not known any more."""

    erasures: list[ErasureView]


class ErasureBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Whom to erase."""

    user_id: str


class OperatorErasuresController(Controller):
    path = "/v1/memory/operator/erasures"
    tags = ("operator",)

    @operation(post, "", "eraseUser", allowed=OPERATES, errors=(409,), status_code=202)
    async def erase(self, library: TheLibrary, data: JSONBody[ErasureBody]) -> ErasureView:
        """Erases all of the named user, as the user's own call would."""
        return erasure_view(await library.erase(data.user_id))

    @operation(get, "", "listErasures", allowed=OPERATES)
    async def latest(self, library: TheLibrary, limit: ErasureLimit = 50) -> ErasuresView:
        """Erasures of all users, latest first, without their ids."""
        return ErasuresView(list(map(erasure_view, await library.erasures.latest(limit=limit))))

    @operation(get, "/{id:str}", "getErasureOfUser", allowed=OPERATES, errors=(404,))
    async def show(self, library: TheLibrary, path_id: PathId, user_id: FromQuery[str]) -> ErasureView:
        """How far the erasure of the named user is."""
        return erasure_view(await library.erasures.found(user_id, path_id))


def _named_project(caller: Caller, project_id: str | None) -> str:
    """Without a project, the call concerns all of the user, also if their token is for one project only."""
    if project_id is None:
        refuse_without_bounds(caller)
        return ""
    if not project_id:
        raise BadInput("project_id is empty: leave it out to erase everything of the user")
    return bounded_project(caller, project_id)


def erasure_view(erasure: ErasureRecord) -> ErasureView:
    request, state = erasure.request, "deleted" if erasure.rewritten_at is None else "rewritten"
    rewritten_at = time_text_or_none(erasure.rewritten_at)
    return view_of(ErasureView, request, erasure_id=request.id, state=state, rewritten_at=rewritten_at)
