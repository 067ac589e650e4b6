"""Opens the part that rephrases questions with a chat model, where one is configured for that."""

from __future__ import annotations

from contextlib import AsyncExitStack

from memory.adapters.models.openai_chat import OpenAiChatModel
from memory.processes.from_settings import chat_server
from memory.recall.query_rewriter import Rewriter, RewriteSettings
from memory.recall.rewrite_prompt import ANSWER_TOKENS, RewriteMode
from memory.runtime.metrics import Metrics
from memory.settings import Settings


async def open_rewriter(settings: Settings, stack: AsyncExitStack, metrics: Metrics) -> Rewriter | None:
    """None if no model is configured for it, or rewriting is off."""
    model, mode = settings.model_for("memory_rewrite"), RewriteMode(settings.memory.rewrite)
    if model is None or mode is RewriteMode.OFF:
        return None
    opened = await stack.enter_async_context(OpenAiChatModel(chat_server(model), metrics=metrics))
    rewriting = RewriteSettings(
        mode,
        hyde=settings.memory.hyde,
        max_tokens=min(model.max_tokens, ANSWER_TOKENS),
        seconds_max=model.llm_timeout_seconds,
    )
    return Rewriter(opened, rewriting)
