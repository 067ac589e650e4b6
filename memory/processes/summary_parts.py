"""The part of the composition root that builds the summarizer of a worker.

As in `composition`, no decisions are made here.
"""

from __future__ import annotations

from memory.learn.readers import Readers
from memory.ports import Embedder, RequestStores, Tokens
from memory.processes.compaction_parts import own_sentences
from memory.processes.writer_parts import ExaminedModel
from memory.runtime.telemetry import Telemetry
from memory.sessions.summaries.summarizer import (
    KeptSummaries,
    Summarizer,
    SummarizerParts,
    SummaryLimits,
    SummaryWriter,
)
from memory.settings import Settings


def summarizer_of(
    settings: Settings,
    readers: Readers,
    telemetry: Telemetry,
    *,
    model: ExaminedModel | None,
    stores: RequestStores,
    summaries: KeptSummaries,
    embedding: tuple[Embedder, Tokens],
) -> Summarizer:
    embedder, tokens = embedding
    return Summarizer(
        SummarizerParts(
            summaries=summaries,
            reader=readers.ready,
            embedder=embedder,
            tokens=tokens,
            sentences=own_sentences,
            writer=None if model is None else SummaryWriter(model, lambda: model.name),
            opt_outs=stores.opt_outs,
        ),
        limits=SummaryLimits(idle_seconds=settings.memory.learn.session_end_seconds),
        telemetry=telemetry,
    )
