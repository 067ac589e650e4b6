"""The part of the composition root that builds the summarizer of a worker.

As in `composition`, no decisions are made here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from memory.adapters.models.openai_chat import OpenAiChatModel
from memory.learn.readers import Readers
from memory.model import Message
from memory.ports import ChatModel, Completion, Embedder, RequestStores, Tokens
from memory.processes.compaction_parts import own_sentences
from memory.processes.from_settings import chat_server
from memory.processes.reader_parts import asks_model, examinee
from memory.runtime.metrics import Metrics
from memory.runtime.telemetry import Telemetry
from memory.sessions.summaries.summarizer import (
    KeptSummaries,
    Summarizer,
    SummarizerParts,
    SummaryLimits,
    SummaryWriter,
)
from memory.settings import Settings


class _ReadingModel:
    """The chat model that reads messages, opened when it is first asked: before, nobody knows which one it is."""

    def __init__(self, settings: Settings, metrics: Metrics, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._metrics = metrics
        self._stack = stack
        self._model: ChatModel | None = None
        self.name = ""

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        if self._model is None:
            named, endpoint = await examinee(self._settings)
            priority = self._settings.memory.extraction.priority
            server = chat_server(named, priority=priority, endpoint=endpoint)
            self._model = await self._stack.enter_async_context(OpenAiChatModel(server, metrics=self._metrics))
            self.name = named.llm_model_name
        return await self._model.complete(messages, max_tokens=max_tokens, seconds=seconds, schema=schema)


@asynccontextmanager
async def open_summarizer(
    settings: Settings,
    readers: Readers,
    telemetry: Telemetry,
    *,
    stores: RequestStores,
    summaries: KeptSummaries,
    embedding: tuple[Embedder, Tokens],
) -> AsyncIterator[Summarizer]:
    """The model that reads messages writes summaries too, from when it has passed its exam."""
    async with AsyncExitStack() as stack:
        model = _ReadingModel(settings, telemetry.metrics, stack)
        writer = SummaryWriter(model, lambda: model.name, lambda: readers.is_slow) if asks_model(settings) else None
        embedder, tokens = embedding
        yield Summarizer(
            SummarizerParts(
                summaries=summaries,
                reader=readers.ready,
                embedder=embedder,
                tokens=tokens,
                sentences=own_sentences,
                writer=writer,
                opt_outs=stores.opt_outs,
            ),
            limits=SummaryLimits(idle_seconds=settings.memory.learn.session_end_seconds),
            telemetry=telemetry,
        )
