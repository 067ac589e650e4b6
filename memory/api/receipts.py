"""The endpoint of receipts: why a chat got its memories."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Controller, get

from memory.api.operations import READS, PathId, TheCaller, TheLibrary, operation
from memory.api.times import TimeText, time_text
from memory.model import CandidateVerdict, RecallStatus
from memory.service.requests import ExplainedReceipt


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


class ReceiptsController(Controller):
    path = "/v1/memory/receipts"
    tags = ("receipts",)

    @operation(get, "/{id:str}", "getReceipt", allowed=READS, errors=(404,))
    async def show(self, library: TheLibrary, caller: TheCaller, path_id: PathId) -> ReceiptView:
        """Why a chat got its memories. The id is the response header `x-memory-receipt`."""
        return receipt_view(await library.receipt(caller.user_id, path_id))


def receipt_view(explained: ExplainedReceipt) -> ReceiptView:
    receipt, contents = explained.receipt, explained.contents
    return ReceiptView(
        id=receipt.id,
        created_at=time_text(receipt.at),
        status=receipt.status,
        reason=receipt.reason,
        signals=dict(receipt.signals),
        query=receipt.query,
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
        injected=[memory_id for note in receipt.notes for memory_id in note.memory_ids],
        tokens=sum(note.tokens for note in receipt.notes),
        timings_ms=dict(receipt.timings_ms),
        outcome=dict(receipt.outcome),
    )
