"""The part of the composition root that builds the summarizer of a worker.

As in `composition`, no decisions are made here.
"""

from __future__ import annotations

from memory.learn.readers import Readers
from memory.processes.compaction_parts import own_sentences
from memory.processes.composition import Parts
from memory.sessions.summaries.summarizer import (
    Summarizer,
    SummarizerParts,
    SummaryLimits,
    SummaryWriter,
)


def summarizer_of(parts: Parts, readers: Readers) -> Summarizer:
    model = parts.writing_model
    return Summarizer(
        SummarizerParts(
            summaries=parts.state.summaries,
            reader=readers.ready,
            embedder=parts.embedder,
            tokens=parts.tokens,
            sentences=own_sentences,
            writer=None if model is None else SummaryWriter(model, lambda: model.name),
            opt_outs=parts.stores.opt_outs,
        ),
        limits=SummaryLimits(idle_seconds=parts.settings.memory.learn.session_end_seconds),
        telemetry=parts.telemetry,
    )
