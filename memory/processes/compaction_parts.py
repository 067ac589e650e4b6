"""The part of the composition root that builds the compactor of a filter.

As in `composition`, no decisions are made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory.adapters.models.chat_writer import ChatWriter
from memory.chat.plain_lines import on_one_line
from memory.learn.reading.units import units_of
from memory.model import statement_key
from memory.ports import ChatModel, CompactedStates, Embedder, MemoryBank, MemoryFilter, MemoryStore, Tokens
from memory.processes.from_settings import recording
from memory.processes.reader_parts import FirstNeeded, answer_limits, ready_reader
from memory.runtime.telemetry import Telemetry
from memory.sessions.compaction.compactor import Compactor, CompactorParts, Held, Kinds
from memory.sessions.compaction.sentence_kinds import SentenceKind, sentence_kinds
from memory.settings import EmbeddingSettings, Settings

EMBEDDED_AT_ONCE = 32  # sentences


def own_sentences(message: str) -> Sequence[str]:
    """The sentences of a message without code, quotations and tables."""
    lines = (line.strip() for unit in units_of(message) if unit.is_own for line in unit.text.splitlines())
    return [line for line in lines if line]


def kinds_by(embedder: Embedder) -> Kinds:
    async def kinds(sentences: Sequence[str]) -> Mapping[str, SentenceKind]:
        known: dict[str, SentenceKind] = {}
        for start in range(0, len(sentences), EMBEDDED_AT_ONCE):
            some = sentences[start : start + EMBEDDED_AT_ONCE]
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


def compactor_of(
    settings: Settings,
    *,
    states: CompactedStates,
    memories: MemoryBank,
    tokens: Tokens,
    model: ChatModel | None,
    telemetry: Telemetry,
) -> Compactor:
    """`model`: writes states where the settings let it."""
    seconds, answer_tokens = answer_limits(settings)
    may_write = model is not None and settings.memory.compaction.writer == "auto"
    parts = CompactorParts(
        states=states,
        reader=FirstNeeded(lambda: ready_reader(settings)),
        tokens=tokens,
        sentences=own_sentences,
        kinds=kinds_by(memories.embedder) if settings.memory.embedding.model == EmbeddingSettings().model else no_kinds,
        held=held_in(memories.store),
        plain=on_one_line,
        redact=recording(settings),
        writer=ChatWriter(model, seconds=seconds, answer_tokens_max=answer_tokens) if model and may_write else None,
    )
    return Compactor(parts, threshold_tokens=settings.memory.compaction.threshold_tokens, telemetry=telemetry)
