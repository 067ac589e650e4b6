"""The endpoints that export all memories of a user, and import them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import Controller, Request, get, post
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.response import Stream

from memory.api.browsers import WrongType
from memory.api.identity import Caller
from memory.api.operations import READS, Allowed, TheCaller, TheLibrary, operation
from memory.errors import BadInput
from memory.service.transfers import LINE_BYTES_MAX, Imported

IMPORT_BYTES_MAX = 1 << 30  # some hundred thousand memories; never held at once
JSON_LINES = "application/x-ndjson"


class ImportedView(msgspec.Struct, frozen=True):
    """`present`: were there already, and stay as they are; `forgotten`: were deleted here before, and stay deleted."""

    stored: int
    present: int
    forgotten: int


@dataclass
class ImportOperation(Operation):
    """Describes the body, which no type of ours parses as a whole."""

    def __post_init__(self) -> None:
        schema = Schema(type=OpenAPIType.STRING, description="The lines of an export.")
        self.request_body = RequestBody(content={JSON_LINES: OpenAPIMediaType(schema=schema)}, required=True)


class TransfersController(Controller):
    path = "/v1/memory"
    tags = ("transfers",)

    @operation(get, "/export", "exportMemories", allowed=READS, media_type=JSON_LINES)
    async def export(self, library: TheLibrary, caller: TheCaller) -> Stream:
        """All memories as JSON lines, whatever their status, with evidence: one file that `import` reads back."""
        return Stream(library.transfers.export(caller.user_id), media_type=JSON_LINES)

    @operation(
        post,
        "/import",
        "importMemories",
        allowed=Allowed("write", is_streamed=True),
        errors=(409,),
        status_code=200,
        request_max_body_size=IMPORT_BYTES_MAX,
        operation_class=ImportOperation,
    )
    async def load(self, library: TheLibrary, caller: TheCaller, request: Request[Caller, Any, Any]) -> ImportedView:
        """Stores the memories of an export as the caller's, with their ids, times and evidence.

        Repeating it changes nothing. Of a file with a line that cannot be read, the lines far before it are stored.
        """
        if request.content_type[0] != JSON_LINES:
            raise WrongType(JSON_LINES)
        found: Imported = await library.transfers.load(caller.user_id, _lines(request.stream()))
        return ImportedView(found.stored, found.present, found.forgotten)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of the stream without their ends. Raises `BadInput` for one that is too long to be a memory."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
        if len(rest) > LINE_BYTES_MAX:
            raise BadInput(f"a line may have {LINE_BYTES_MAX} bytes", code="too_large")
    if rest:
        yield rest


__all__ = ["IMPORT_BYTES_MAX", "JSON_LINES", "TransfersController"]
