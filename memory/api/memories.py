"""The endpoints of memories; each is one call of the library."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias, cast

from litestar import Controller, Response, delete, get, patch, post
from litestar.datastructures import ResponseHeader
from litestar.di import NamedDependency, Provide
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromQuery, HeaderParameter, JSONBody, QueryParameter

from memory.api import memory_views as views
from memory.api.bodies import messages_of
from memory.api.guards import bounded_project, is_visible, refuse_foreign_memory
from memory.api.identity import refuse_unredacted
from memory.api.memory_views import MemoryView, memory_view
from memory.api.operations import READS_PROJECTS, WRITES_PROJECTS, IdempotencyKey, PathId, TheCall, operation
from memory.api.times import time_of
from memory.errors import BadInput
from memory.model import Memory, MemoryStatus, RequestOptions, Scope
from memory.model.claim_filters import FILTER_CHARACTERS_MAX, ClaimFilter
from memory.model.memories import version_of
from memory.service.library import PAGE_MEMORIES_MAX
from memory.service.requests import ListedContent

StatusFilter: TypeAlias = Literal["active", "superseded", "archived", "raw", "all"]
PageLimit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=PAGE_MEMORIES_MAX)]


TypesText: TypeAlias = Annotated[
    str, QueryParameter(description="Types, separated by commas, as vLLM Semantic Router takes them.")
]
ClaimText: TypeAlias = Annotated[str, QueryParameter(max_length=FILTER_CHARACTERS_MAX, description=views.WHOLE_FIELD)]


@dataclass(frozen=True, slots=True)
class AskedPage:
    """Which memories a listing is about."""

    status: FromQuery[StatusFilter] = "active"
    as_of: FromQuery[str | None] = None
    limit: PageLimit = PAGE_MEMORIES_MAX
    cursor: FromQuery[str] = ""
    project_id: FromQuery[str] = ""


def asked_content(
    memory_type: FromQuery[str] = "",
    type: TypesText = "",  # noqa: A002 - parameters are called as they are asked for
    subject: ClaimText = "",
    name: ClaimText = "",
    attribute: ClaimText = "",
    value: ClaimText = "",
) -> ListedContent:
    types = tuple(filter(None, map(str.strip, type.split(","))))
    if memory_type and types:
        raise BadInput("memory_type and type say the same: give one of them")
    return ListedContent(types or tuple(filter(None, [memory_type])), ClaimFilter(subject, name, attribute, value))


PAGE = {"asked": Provide(AskedPage, sync_to_thread=False), "about": Provide(asked_content, sync_to_thread=False)}


ANY = "*"
TAGS_MAX = 100  # of one header

IfMatch: TypeAlias = Annotated[
    str | None,
    HeaderParameter(
        name="If-Match",
        description="ETags, or `*`. The call is refused with 412 unless the memory has one of them when it is written.",
    ),
]
IfNoneMatch: TypeAlias = Annotated[
    str | None,
    HeaderParameter(name="If-None-Match", description="ETags, or `*`. 304 without a body if the memory has one."),
]
NOT_MODIFIED = {304: ResponseSpec(None, False, "It has one of the ETags of `If-None-Match`.")}
ETAG_HEADER = ResponseHeader(
    name="ETag", documentation_only=True, value="", description="Changes whenever anything of the memory does."
)


class MemoriesController(Controller):
    path = "/v1/memory"
    tags = ("memories",)

    @operation(post, "/", "addMemories", allowed=WRITES_PROJECTS, errors=(409, 422), status_code=201)
    async def add(
        self, call: TheCall, data: JSONBody[views.AddBody], idempotency_key: IdempotencyKey = ""
    ) -> views.AddedMemories:
        """Stores memories, without the secrets in them. Searches find them as soon as this returns."""
        refuse_unredacted(call.caller, redact=data.redact)
        given = [views.new_memory(memory, redact=data.redact) for memory in data.memories]
        items = [replace(one, project_id=bounded_project(call.caller, one.project_id)) for one in given]
        return views.AddedMemories(await call.library.add(Scope(call.user_id), items, idempotency_key=idempotency_key))

    @operation(post, "/search", "searchMemories", allowed=READS_PROJECTS)
    async def search(self, call: TheCall, data: JSONBody[views.SearchBody]) -> views.FoundMemories:
        """Finds memories, best first: those that a chat with this question and history would get."""
        started = time.perf_counter()
        project_id = bounded_project(call.caller, data.project_id or "")
        found = await call.library.search(
            Scope(call.user_id, project_id, data.session_id or "", data.agent_id or ""),
            query=data.query,
            history=messages_of(data.history, "history", call.library.envelopes, call.user_id),
            options=RequestOptions(
                memory_types=tuple(data.memory_types or ()),
                retrieval_limit=data.limit,
                token_budget=data.token_budget,
                claim=data.claim,
            ),
            as_of=time_of(data.as_of, "as_of"),
        )
        took_ms = round((time.perf_counter() - started) * 1000, 3)
        return views.FoundMemories(list(map(views.found_memory, found)), took_ms)

    @operation(get, "/", "listMemories", allowed=READS_PROJECTS, dependencies=PAGE)
    async def show_page(
        self, call: TheCall, asked: NamedDependency[AskedPage], about: NamedDependency[ListedContent]
    ) -> views.ListedMemories:
        """One page of memories, newest first, with the facts of one sentence next to one another (a sentence may go on
        in the next page). `as_of`: those that had that status then. `subject`, `name`, `attribute` and `value`: those
        whose claim has them.
        """
        scope = Scope(call.user_id, bounded_project(call.caller, asked.project_id))
        status = None if asked.status == "all" else MemoryStatus(asked.status)
        as_of = time_of(asked.as_of, "as_of")
        page = await call.library.page(
            scope, status=status, about=about, as_of=as_of, limit=asked.limit, cursor=asked.cursor
        )
        total = await call.library.total(scope, status=status, about=about) if as_of is None else None
        memories = views.listed_memories(page.items)
        return views.ListedMemories(memories, page.next_cursor or None, total, asked.limit)

    @operation(delete, "/", "deleteMemories", allowed=WRITES_PROJECTS, errors=(409,))
    async def delete_scope(
        self, call: TheCall, user_id: FromQuery[str | None] = None, project_id: FromQuery[str | None] = None
    ) -> views.DeletedScope:
        """Deletes all memories and the conversation record of the user, or of one of their projects."""
        if user_id is None:  # that it is the caller's own was checked with the identity
            raise BadInput("user_id must be given: this deletes all memories of that user, or of one of their projects")
        if project_id == "":
            raise BadInput("project_id is empty: leave it out to delete all memories of the user")
        erased = await call.library.erase(call.user_id, bounded_project(call.caller, project_id or ""))
        return views.DeletedScope(erased.request.deleted["memories"], erased.request.deleted["turns_withdrawn"])

    @operation(
        get,
        "/{id:str}",
        "getMemory",
        allowed=READS_PROJECTS,
        errors=(404,),
        also=NOT_MODIFIED,
        response_headers=[ETAG_HEADER],
    )
    async def show(
        self, call: TheCall, path_id: PathId, if_none_match: IfNoneMatch = None
    ) -> Response[views.MemoryView]:
        """One memory."""
        await refuse_foreign_memory(call.library, call.caller, path_id, is_change=False)
        return shown_unless_known(await call.library.get(call.user_id, path_id), if_none_match)

    @operation(
        patch,
        "/{id:str}",
        "editMemory",
        allowed=WRITES_PROJECTS,
        errors=(404, 409, 412),
        response_headers=[ETAG_HEADER],
    )
    async def edit(
        self, call: TheCall, path_id: PathId, data: JSONBody[views.EditBody], if_match: IfMatch = None
    ) -> Response[views.MemoryView]:
        """Changes a memory in place, or restores an archived one; its id and times stay. `visibility` shares a memory
        in a project, or takes it back: then it gets a new id.
        """
        await refuse_foreign_memory(call.library, call.caller, path_id, is_change=True)
        expected, change = expected_versions(if_match), views.edit_of(data)
        if change.project_id:
            bounded_project(call.caller, change.project_id)
        return shown(await call.library.patch(call.user_id, path_id, change, expected=expected))

    @operation(delete, "/{id:str}", "deleteMemory", allowed=WRITES_PROJECTS, errors=(404, 409, 412))
    async def delete(self, call: TheCall, path_id: PathId, if_match: IfMatch = None) -> views.DeletedMemory:
        """Forgets one memory for good."""
        await refuse_foreign_memory(call.library, call.caller, path_id, is_change=True)
        await call.library.delete(call.user_id, path_id, expected=expected_versions(if_match))
        return views.DeletedMemory(1)

    @operation(get, "/{id:str}/history", "getMemoryHistory", allowed=READS_PROJECTS, errors=(404,))
    async def show_history(self, call: TheCall, path_id: PathId) -> views.MemoryHistory:
        """The memory, what it replaced, and all earlier wordings, latest first."""
        await refuse_foreign_memory(call.library, call.caller, path_id, is_change=False)
        history = await call.library.history(call.user_id, path_id)
        return views.history_view([one for one in history if is_visible(call.caller, one)])


# Entity tags (RFC 9110): the version of the memory in quotes. They are strong: with the same tag, representations are
# the same, byte for byte, on the same release.


def tag_of(memory: Memory) -> str:
    return f'"{version_of(memory)}"'


def shown(memory: Memory) -> Response[MemoryView]:
    """The memory with its tag."""
    return Response(memory_view(memory), headers={"etag": tag_of(memory)})


def shown_unless_known(memory: Memory, if_none_match: str | None) -> Response[MemoryView]:
    """The memory, or 304 if the caller has it in this version."""
    known = None if if_none_match is None else _tags("If-None-Match", if_none_match)
    if known is None or not (ANY in known or tag_of(memory) in {tag.removeprefix("W/") for tag in known}):
        return shown(memory)
    return cast(Response[MemoryView], Response(None, status_code=304, headers={"etag": tag_of(memory)}))


def expected_versions(if_match: str | None) -> frozenset[str] | None:
    """The versions that the caller allows; None for any. Weak tags match none. Raises `BadInput`."""
    tags = [ANY] if if_match is None else _tags("If-Match", if_match)
    return None if ANY in tags else frozenset(tag[1:-1] for tag in tags if not tag.startswith("W/"))


def _tags(header: str, value: str) -> list[str]:
    """The tags of a header, with their quotes. Ours contain no commas, so that a foreign tag with one matches none."""
    tags = [tag.strip(" \t") for tag in value.split(",")]
    quoted = [tag.removeprefix("W/") for tag in tags]
    is_list = all(len(tag) >= 2 and tag[0] == tag[-1] == '"' and '"' not in tag[1:-1] for tag in quoted)
    if len(tags) > TAGS_MAX or not (tags == [ANY] or is_list):
        raise BadInput(
            f'{header} must be * or at most {TAGS_MAX} ETags in quotes, such as "0123abcd"; send one you got'
        )
    return tags
