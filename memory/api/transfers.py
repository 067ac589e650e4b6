"""The endpoints that export all memories of a user, and import them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec
from litestar import Controller, Request, get, post
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import FromQuery, QueryParameter
from litestar.response import Stream

from memory.api.browsers import WrongType
from memory.api.guards import bounded_project
from memory.api.identity import Caller
from memory.api.operations import READS_PROJECTS, Allowed, TheCall, operation
from memory.api.views import view_of
from memory.errors import BadInput
from memory.model import Scope
from memory.service.transfers import LINE_BYTES_MAX

IMPORT_BYTES_MAX = 1 << 30  # some hundred thousand memories; never held at once
JSON_LINES = "application/x-ndjson"


FirstLine: TypeAlias = Annotated[
    int,
    QueryParameter(
        ge=2, le=1 << 40, description="The number in the whole file of the line after the header; messages count so."
    ),
]


class ImportedView(msgspec.Struct, frozen=True):
    """Memories that were stored; `present`: were there already, and stay as they are; `forgotten`: were deleted here
    before, and stay deleted. `profiles` that were set; `turns`, `messages` and rows of `raw_words` of the conversation
    record that were stored; `unread`: lines by their kind, where that is not read.
    """

    stored: int
    present: int
    forgotten: int
    profiles: int
    turns: int
    messages: int
    raw_words: int
    unread: dict[str, int]


@dataclass
class ImportOperation(Operation):
    """Describes the body, which no type of ours parses as a whole."""

    def __post_init__(self) -> None:
        schema = Schema(type=OpenAPIType.STRING, description="The lines of an export.")
        self.request_body = RequestBody(content={JSON_LINES: OpenAPIMediaType(schema=schema)}, required=True)


class TransfersController(Controller):
    path = "/v1/memory"
    tags = ("transfers",)

    @operation(get, "/export", "exportMemories", allowed=READS_PROJECTS, media_type=JSON_LINES)
    async def export(
        self, call: TheCall, record: FromQuery[bool] = True, project_id: FromQuery[str | None] = None
    ) -> Stream:
        """Everything of the user as JSON lines, one file that `import` reads back: what they decided about profiles,
        memories, whatever their status, with evidence, and unless `record` is false the conversation record.

        With `project_id`, what is in that project alone; a member of a shared project gets also what others share there
        with them.
        """
        if project_id == "":
            raise BadInput("project_id is empty: leave it out to export everything of the user")
        Scope(call.user_id, project := bounded_project(call.caller, project_id or ""))  # before the answer begins
        lines = call.library.transfers.export(call.user_id, project_id=project, has_record=record)
        return Stream(lines, media_type=JSON_LINES)

    @operation(
        post,
        "/import",
        "importMemories",
        allowed=Allowed("write", is_streamed=True),
        errors=(409,),
        request_max_body_size=IMPORT_BYTES_MAX,
        operation_class=ImportOperation,
    )
    async def load(self, call: TheCall, request: Request[Caller, Any, Any], first_line: FirstLine = 2) -> ImportedView:
        """Stores the memories and profiles of an export as the caller's, with their ids, times and evidence.

        Repeating it changes nothing. A line that cannot be read or stored is refused with its number, and with how many
        lines before it are stored by then. A file may be sent in several calls, each with the header as its first line.
        """
        if request.content_type[0] != JSON_LINES:
            raise WrongType(JSON_LINES)
        found = await call.library.transfers.load(
            call.user_id, _lines(request.stream(), first_line), first_line=first_line
        )
        return view_of(ImportedView, found)


async def _lines(chunks: AsyncIterator[bytes], first_line: int) -> AsyncIterator[bytes]:
    """The lines of the stream without their ends. Raises `BadInput` for one that is too long to be a memory."""
    rest, number = b"", first_line - 1
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
        number += len(lines)
        if len(rest) > LINE_BYTES_MAX:
            raise BadInput(f"line {number} is too long: a line may have {LINE_BYTES_MAX} bytes", code="too_large")
    if rest:
        yield rest
