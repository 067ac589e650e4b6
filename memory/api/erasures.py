"""Erasing everything of a user, and its proof."""

from __future__ import annotations

from typing import Literal

import msgspec
from litestar import Controller, delete, get

from memory.api.operations import READS, WRITES, PathId, TheCaller, TheLibrary, operation
from memory.api.times import TimeText, time_text, time_text_or_none
from memory.service.user_erasures import ErasureStatus


class ScanView(msgspec.Struct, frozen=True):
    """`found_in`: files of the server that hold the user's id."""

    scanned_at: TimeText
    files: int
    bytes: int
    found_in: list[str]


class ErasureView(msgspec.Struct, frozen=True):
    """`deleted`: no call finds anything, files may hold deleted bytes; `rewritten`: they do not; `proven`: a look
    into all files found nothing; `remains`: it found the files in `scan`.
    """

    erasure_id: str
    state: Literal["deleted", "rewritten", "proven", "remains"]
    asked_at: TimeText
    deleted_at: TimeText
    deleted: dict[str, int]
    rewritten_at: TimeText | None
    scan: ScanView | None


class EverythingController(Controller):
    path = "/v1/memory/everything"
    tags = ("erasures",)

    @operation(delete, "", "eraseEverything", allowed=WRITES, errors=(409,), status_code=202)
    async def erase(self, library: TheLibrary, caller: TheCaller) -> ErasureView:
        """Erases all of the user. On return no call finds anything; files are rewritten soon after."""
        return erasure_view(await library.erase_everything(caller.user_id))


class ErasuresController(Controller):
    path = "/v1/memory/erasures"
    tags = ("erasures",)

    @operation(get, "/{id:str}", "getErasure", allowed=READS, errors=(404,))
    async def show(self, library: TheLibrary, caller: TheCaller, path_id: PathId) -> ErasureView:
        """How far an erasure is, and its proof. Looks for the user's id in all files once they are rewritten."""
        return erasure_view(await library.erasures.status(caller.user_id, path_id))


def erasure_view(status: ErasureStatus) -> ErasureView:
    request, scan = status.record.request, status.record.scan
    return ErasureView(
        request.id,
        status.state.value,
        time_text(request.asked_at),
        time_text(request.deleted_at),
        dict(request.deleted),
        time_text_or_none(status.record.rewritten_at),
        ScanView(time_text(scan.scanned_at), scan.files, scan.bytes, list(scan.found_in)) if scan else None,
    )


__all__ = ["ErasuresController", "EverythingController", "erasure_view"]
