"""The endpoint of receipts: why a chat got its memories."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from litestar import Controller, get
from litestar.params import FromQuery, QueryParameter

from memory.api.operations import READS, PathId, TheCall, operation
from memory.api.times import TimeText, time_text
from memory.api.views import view_of
from memory.model import CandidateVerdict, RecallStatus, Receipt
from memory.service.requests import ExplainedReceipt

PAGE_RECEIPTS_MAX = 100
ReceiptLimit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=PAGE_RECEIPTS_MAX)]


class CandidateView(msgspec.Struct, frozen=True):
    """`content` is null for a memory that is forgotten, or unavailable now."""

    id: str
    content: str | None
    score: float
    score_parts: dict[str, float]
    verdict: CandidateVerdict


class NotedMemory(msgspec.Struct, frozen=True):
    """`content` is null for a memory that is forgotten, or unavailable now."""

    id: str
    content: str | None


class CarriedNoteView(msgspec.Struct, frozen=True):
    """A note of the request, and before which message it stands."""

    before_message: int | None
    is_new: bool
    tokens: int
    memories: list[NotedMemory]


class ReceiptView(msgspec.Struct, frozen=True):
    """The decision to search, the query, each candidate and its verdict, the notes, and milliseconds by stage."""

    id: str
    created_at: TimeText
    status: RecallStatus
    reason: str
    signals: dict[str, Any]
    query: str
    candidates: list[CandidateView]
    candidates_left_out: int
    notes: list[CarriedNoteView]
    injected: list[str]
    tokens: int
    timings_ms: dict[str, float]
    outcome: dict[str, Any]


class ReceiptSummary(msgspec.Struct, frozen=True):
    """A receipt in a list. `injected`: the memories in its notes. `outcome`: of what was asked of memory."""

    id: str
    created_at: TimeText
    status: RecallStatus
    reason: str
    query: str
    injected: list[str]
    tokens: int
    outcome: dict[str, Any]


class ReceiptPageView(msgspec.Struct, frozen=True):
    """`next_cursor`: to be passed as `cursor`; null after the last page."""

    receipts: list[ReceiptSummary]
    next_cursor: str | None


class ReceiptsController(Controller):
    path = "/v1/memory/receipts"
    tags = ("receipts",)

    @operation(get, "/", "listReceipts", allowed=READS)
    async def show_page(
        self,
        call: TheCall,
        memory_id: FromQuery[str] = "",
        asked: FromQuery[bool] = False,
        limit: ReceiptLimit = 20,
        cursor: FromQuery[str] = "",
    ) -> ReceiptPageView:
        """One page of receipts, latest first. `memory_id`: only chats whose notes held that memory. `asked`: only chats
        that asked something of memory itself, of which `outcome` says what became.
        """
        page = await call.library.receipts(
            call.user_id, memory_id=memory_id, is_asked=asked, limit=limit, cursor=cursor
        )
        shown = [view_of(ReceiptSummary, one, **_of_notes(one)) for one in page.items]
        return ReceiptPageView(shown, page.next_cursor or None)

    @operation(get, "/{id:str}", "getReceipt", allowed=READS, errors=(404,))
    async def show(self, call: TheCall, path_id: PathId) -> ReceiptView:
        """Why a chat got its memories. The id is the response header `x-memory-receipt`."""
        return receipt_view(await call.library.receipt(call.user_id, path_id))


def _of_notes(receipt: Receipt) -> dict[str, Any]:
    return {
        "created_at": time_text(receipt.at),
        "injected": [memory_id for note in receipt.notes for memory_id in note.memory_ids],
        "tokens": sum(note.tokens for note in receipt.notes),
    }


def receipt_view(explained: ExplainedReceipt) -> ReceiptView:
    receipt, contents = explained.receipt, explained.contents
    return view_of(
        ReceiptView,
        receipt,
        **_of_notes(receipt),
        candidates=[
            CandidateView(one.memory_id, contents.get(one.memory_id), one.score, dict(one.parts), one.verdict)
            for one in receipt.candidates
        ],
        candidates_left_out=receipt.left_out,
        notes=[
            CarriedNoteView(
                note.before, note.is_new, note.tokens, [NotedMemory(one, contents.get(one)) for one in note.memory_ids]
            )
            for note in receipt.notes
        ],
    )
