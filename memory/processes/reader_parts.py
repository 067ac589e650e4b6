"""Builds readers, the trained one and a chat model's, and the model that writes what is stored besides memories.

That is the chat model of learning, once it has passed its exam: each process that writes states or summaries looks up
the result, which the worker stores. As in `composition`, nothing else is decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import structlog

from memory.adapters.breaker import Breaker
from memory.adapters.models.openai_chat import OpenAiChatModel
from memory.adapters.models.reader_weights import prepared
from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.adapters.models.upstream_models import first_model
from memory.errors import Unavailable
from memory.learn.readers import FallbackReader, OffReader, Readers, examine
from memory.learn.reading.exam import StoredExam
from memory.learn.reading.model_reader import ModelReader
from memory.learn.reading.trained import TrainedReader
from memory.model import Message
from memory.ports import Completion, ReadyReader, StatementReader
from memory.ports.reading import ExamResult, ExamResults
from memory.processes.from_settings import PATIENT_SECONDS, chat_server, model_reader_settings
from memory.runtime.metrics import Metrics
from memory.settings import ExternalModel, ModelEndpoint, Settings

MODEL_FAILURES_MAX = 2  # slow answers in a row, after which one call at a time is made: each may take 30 s
READ_SECONDS_MAX, READ_TOKENS_MAX = 30.0, 1_000  # limits of an answer of the upstream's own model

log = structlog.get_logger(__name__)
CHECK_SECONDS = 60.0  # until a model that has not passed is looked up again
PASSED_SECONDS = 600.0  # until one that has: its result may have expired, or the upstream may serve another model


@asynccontextmanager
async def open_readers(settings: Settings, metrics: Metrics) -> AsyncIterator[Readers]:
    """The configured readers, for the worker and for evaluations. Raises `BadSetting`; no model has to be up.

    Here a model reads without an exam only if the settings say `model` and name one; see `examining`.
    """
    learn, model = settings.memory.learn, settings.model_for("memory_extraction")
    ready = await asyncio.to_thread(ready_reader, settings)
    if learn.reader != "model" or model is None:
        yield Readers(ready)
        return
    async with open_model_reader(settings, model, metrics) as reader:
        yield Readers(ready, FallbackReader(reader, ready, metrics=metrics))


class FirstNeeded:
    """Loads a reader, half a second and 60 MB, when something is to be read."""

    def __init__(self, load: Callable[[], StatementReader]) -> None:
        self._load = load
        self._reader: StatementReader | None = None

    async def __call__(self) -> StatementReader:
        if self._reader is None:
            self._reader = await asyncio.to_thread(self._load)
        return self._reader


def ready_reader(settings: Settings) -> ReadyReader:
    """The reader that needs no server: the trained one, which takes half a second to load, or none."""
    if settings.memory.learn.reader == "off":
        return OffReader()
    return TrainedReader(OnnxStatementEncoder(prepared(settings.models_path)))


@asynccontextmanager
async def open_model_reader(
    settings: Settings, model: ExternalModel, metrics: Metrics, *, endpoint: str = ""
) -> AsyncIterator[ModelReader]:
    """`endpoint`: the base URL, if it differs from the model's settings."""
    async with open_chat_model(settings, model, metrics, endpoint=endpoint) as opened:
        yield ModelReader(opened, model_reader_settings(settings, model), metrics=metrics)


def open_chat_model(
    settings: Settings, model: ExternalModel, metrics: Metrics, *, endpoint: str = ""
) -> OpenAiChatModel:
    """The model as learning asks it: at its priority, with a breaker. To be opened with `async with`."""
    server = chat_server(model, priority=settings.memory.extraction.priority, endpoint=endpoint)
    breaker = Breaker("model", failures_max=MODEL_FAILURES_MAX)
    return OpenAiChatModel(server, metrics=metrics, breaker=breaker)


async def examining(settings: Settings, readers: Readers, exams: ExamResults, metrics: Metrics) -> None:
    """Let the configured model, or else the upstream's first, read once it may. Returns when that is decided.

    With `auto` it takes the exam; with `model` it need not. Other settings use no model. On any error the trained
    reader continues.
    """
    (outcome,) = await asyncio.gather(_examining(settings, readers, exams, metrics), return_exceptions=True)
    if isinstance(outcome, Exception):
        log.error("the exam broke off: the trained reader goes on reading", error=type(outcome).__name__)


async def _examining(settings: Settings, readers: Readers, exams: ExamResults, metrics: Metrics) -> None:
    if not asks_model(settings) or readers.is_slow:
        return
    async with AsyncExitStack() as stack:

        async def sit() -> tuple[StatementReader, ExamResult]:
            model, endpoint = await examinee(settings)
            opening = open_model_reader(settings, model, metrics, endpoint=endpoint)
            reader = await stack.enter_async_context(opening)
            both = FallbackReader(reader, readers.ready, metrics=metrics)
            if settings.memory.learn.reader == "model":
                return both, ExamResult(passed=True, score=1.0)
            exam = StoredExam(exams, model=model.llm_model_name, server=endpoint)
            return both, await exam.result(reader, reader.prompt_version)

        if await examine(readers, sit, metrics=metrics):
            await asyncio.Event().wait()  # the reader's connections stay open until the worker ends


def asks_model(settings: Settings) -> bool:
    """Whether the settings want a chat model as the reader, and name one or an upstream."""
    has_one = settings.model_for("memory_extraction") is not None or bool(settings.upstream)
    return settings.memory.learn.reader in ("auto", "model") and has_one


async def examinee(settings: Settings) -> tuple[ExternalModel, str]:
    """The model that should read, and its base URL: the configured one, or the upstream's first.

    Raises `Unavailable` if the upstream does not list its models.
    """
    named = settings.model_for("memory_extraction")
    if named is not None:
        return named, chat_server(named).endpoint
    model = ExternalModel(
        model_role="memory_extraction",
        llm_endpoint=ModelEndpoint(address=settings.upstream),
        llm_model_name=await first_model(settings.upstream, seconds=PATIENT_SECONDS),
        llm_timeout_seconds=READ_SECONDS_MAX,
        max_tokens=READ_TOKENS_MAX,
    )
    return model, settings.upstream


def answer_limits(settings: Settings) -> tuple[float, int]:
    """Seconds and tokens of an answer of that model."""
    named = settings.model_for("memory_extraction")
    return (named.llm_timeout_seconds, named.max_tokens) if named else (READ_SECONDS_MAX, READ_TOKENS_MAX)


async def open_writing_model(
    settings: Settings, stack: AsyncExitStack, *, exams: ExamResults, metrics: Metrics
) -> ExaminedModel | None:
    """None where the settings want no model to read. The stack closes it."""
    if not asks_model(settings):
        return None
    return await stack.enter_async_context(aclosing(ExaminedModel(settings, exams=exams, metrics=metrics)))


class ExaminedModel:
    """`memory.ports.ChatModel`; `name`: of the one that answered last. Raises `Unavailable` while none has passed."""

    def __init__(self, settings: Settings, *, exams: ExamResults, metrics: Metrics) -> None:
        self.name = ""
        self._settings = settings
        self._exams = exams
        self._metrics = metrics
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._opened: tuple[str, OpenAiChatModel] | None = None  # with its base URL
        self._check_at = 0.0  # by the event loop's clock

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
            await self.aclose()
        async with AsyncExitStack() as stack:
            chat = await stack.enter_async_context(
                open_chat_model(self._settings, model, self._metrics, endpoint=endpoint)
            )
            if self._settings.memory.learn.reader != "model":
                exam = StoredExam(self._exams, model=model.llm_model_name, server=endpoint)
                asking = ModelReader(chat, model_reader_settings(self._settings, model))
                result = await exam.known(asking.prompt_version)
                if result is None or not result.passed:
                    await self.aclose()
                    return
            if self._opened is None:
                self.name, self._opened = model.llm_model_name, (endpoint, chat)
                self._stack = stack.pop_all()

    async def aclose(self) -> None:
        self._opened = None
        await self._stack.aclose()
