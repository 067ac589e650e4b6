"""Builds upkeep, for the worker and for the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from memory.adapters.models.openai_chat import OpenAiChatModel
from memory.learn.reflection import Reflector
from memory.learn.upkeep import Upkeep
from memory.ports import StatementReader
from memory.processes.composition import Parts
from memory.processes.from_settings import chat_server, retention_rules
from memory.processes.reader_parts import FirstNeeded, ready_reader


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
