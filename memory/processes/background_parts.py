"""Builds what works in the background: the compactor of a filter, the summarizer of a worker, and upkeep.

As in `composition`, no decisions are made here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from memory.adapters.models.chat_writer import ChatWriter
from memory.adapters.models.openai_chat import OpenAiChatModel
from memory.chat.plain_lines import on_one_line
from memory.learn.readers import Readers
from memory.learn.reading.units import units_of
from memory.learn.reflection import Reflector
from memory.learn.upkeep import Upkeep
from memory.model import statement_key
from memory.ports import Embedder, MemoryFilter, MemoryStore, StatementReader
from memory.ports.paging import batched
from memory.processes.composition import Parts
from memory.processes.from_settings import chat_server, recording, retention_rules
from memory.processes.reader_parts import FirstNeeded, answer_limits, ready_reader
from memory.sessions.compaction.compactor import Compactor, CompactorParts, Held, Kinds
from memory.sessions.compaction.sentence_kinds import SentenceKind, sentence_kinds
from memory.sessions.summaries.summarizer import Summarizer, SummarizerParts, SummaryWriter
from memory.settings import EmbeddingSettings

EMBEDDED_AT_ONCE = 32  # sentences: others wait in the lane of learning, which takes a bounded number


def own_sentences(message: str) -> Sequence[str]:
    """The sentences of a message without code, quotations and tables."""
    lines = (line.strip() for unit in units_of(message) if unit.is_own for line in unit.text.splitlines())
    return [line for line in lines if line]


def kinds_by(embedder: Embedder) -> Kinds:
    async def kinds(sentences: Sequence[str]) -> Mapping[str, SentenceKind]:
        known: dict[str, SentenceKind] = {}
        for some in batched(sentences, EMBEDDED_AT_ONCE):
            found = sentence_kinds().of(await embedder.embed(some, is_urgent=False))
            known |= {text: kind for text, kind in zip(some, found, strict=True) if kind is not None}
        return known

    return kinds


async def no_kinds(sentences: Sequence[str]) -> Mapping[str, SentenceKind]:
    """With another embedding model than the one that they were learnt with."""
    return {}


def held_in(store: MemoryStore) -> Held:
    async def held(user_id: str, texts: Sequence[str]) -> list[str]:
        where = MemoryFilter(user_id)
        return [text for text in texts if await store.same_statement(where, statement_key(text)) is not None]

    return held


def compactor_of(parts: Parts) -> Compactor:
    settings, model = parts.settings, parts.writing_model
    seconds, answer_tokens = answer_limits(settings)
    may_write = model is not None and settings.memory.compaction.writer == "auto"
    own = CompactorParts(
        states=parts.state.states,
        reader=FirstNeeded(lambda: ready_reader(settings)),
        tokens=parts.tokens,
        sentences=own_sentences,
        kinds=kinds_by(parts.embedder) if settings.memory.embedding.model == EmbeddingSettings().model else no_kinds,
        held=held_in(parts.store),
        plain=on_one_line,
        redact=recording(settings),
        writer=ChatWriter(model, seconds=seconds, answer_tokens_max=answer_tokens) if model and may_write else None,
    )
    return Compactor(own, threshold_tokens=settings.memory.compaction.threshold_tokens, telemetry=parts.telemetry)


@asynccontextmanager
async def open_upkeep(parts: Parts, *, reader: StatementReader | None = None) -> AsyncIterator[Upkeep]:
    """Upkeep. Reflections are derived only if enabled, with a model configured for it. `reader`: if one is loaded."""
    model, at_least = parts.settings.model_for("memory_extraction"), parts.settings.memory.life.reflect_from
    reflecting = None
    async with AsyncExitStack() as stack:
        if model is not None and at_least:
            opened = await stack.enter_async_context(OpenAiChatModel(chat_server(model), metrics=parts.metrics))
            reflecting = Reflector(
                opened, name=model.llm_model_name, at_least=at_least, seconds=model.llm_timeout_seconds
            )
        yield Upkeep(
            memories=parts.bank,
            stores=parts.stores,
            telemetry=parts.telemetry,
            rules=retention_rules(parts.settings),
            reflecting=reflecting,
            reader=FirstNeeded(lambda: reader or ready_reader(parts.settings)),
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
            idle_seconds=parts.settings.memory.learn.session_end_seconds,
        ),
        parts.telemetry,
    )
