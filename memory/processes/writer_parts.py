"""The part of the composition root that opens the model for what is written besides memories: states and summaries.

It is the chat model that learning uses, once it has passed its exam. Each process that writes looks up the result,
which the worker stores; as in `composition`, nothing else is decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from memory.adapters.models.openai_chat import OpenAiChatModel
from memory.errors import Unavailable
from memory.learn.reading.exam import StoredExam
from memory.learn.reading.model_reader import ModelReader
from memory.model import Message
from memory.ports import Completion
from memory.ports.reading import ExamResults
from memory.processes.from_settings import model_reader_settings
from memory.processes.reader_parts import asks_model, examinee, open_chat_model
from memory.runtime.metrics import Metrics
from memory.settings import Settings

CHECK_SECONDS = 60.0  # until a model that has not passed is looked up again
PASSED_SECONDS = 600.0  # until one that has: its result may have expired, or the upstream may serve another model


async def open_writing_model(
    settings: Settings, stack: AsyncExitStack, *, exams: ExamResults, metrics: Metrics
) -> ExaminedModel | None:
    """None where the settings want no model to read. The stack closes it."""
    if not asks_model(settings):
        return None
    return await stack.enter_async_context(ExaminedModel(settings, exams=exams, metrics=metrics))


class ExaminedModel:
    """`memory.ports.ChatModel`. Open with `async with`; no model has to be up. `name`: of the one that answered last.

    Raises `Unavailable` while no model has passed the exam.
    """

    def __init__(self, settings: Settings, *, exams: ExamResults, metrics: Metrics) -> None:
        self.name = ""
        self._settings = settings
        self._exams = exams
        self._metrics = metrics
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._opened: tuple[str, OpenAiChatModel] | None = None  # with its base URL
        self._check_at = 0.0  # by the event loop's clock

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, seconds: float, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        model = await self._model()
        return await model.complete(messages, max_tokens=max_tokens, seconds=seconds, schema=schema)

    async def _model(self) -> OpenAiChatModel:
        async with self._opening:
            now = asyncio.get_running_loop().time()
            if now >= self._check_at:
                self._check_at = now + CHECK_SECONDS
                await self._look_up()
                self._check_at = now + (PASSED_SECONDS if self._opened is not None else CHECK_SECONDS)
            if self._opened is None:
                raise Unavailable("model", "none has passed the exam")
            return self._opened[1]

    async def _look_up(self) -> None:
        """Open the model if it may write. Raises `Unavailable` if the upstream or the results cannot be asked."""
        model, endpoint = await examinee(self._settings)
        if self._opened is not None and (self.name, self._opened[0]) != (model.llm_model_name, endpoint):
            await self._close()
        async with AsyncExitStack() as stack:
            chat = await stack.enter_async_context(
                open_chat_model(self._settings, model, self._metrics, endpoint=endpoint)
            )
            if self._settings.memory.learn.reader != "model":
                exam = StoredExam(self._exams, model=model.llm_model_name, server=endpoint)
                asking = ModelReader(chat, model_reader_settings(self._settings, model))
                result = await exam.known(asking.prompt_version)
                if result is None or not result.passed:
                    await self._close()
                    return
            if self._opened is None:
                self.name, self._opened = model.llm_model_name, (endpoint, chat)
                self._stack = stack.pop_all()

    async def _close(self) -> None:
        self._opened = None
        await self._stack.aclose()
