"""The part of the composition root that builds readers: the trained one, a chat model's, and who may read.

As in `composition`, adapters are built here and nothing is decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from memory.adapters.breaker import Breaker
from memory.adapters.models.openai_chat import OpenAiChatModel, first_model
from memory.adapters.models.reader_weights import prepared
from memory.adapters.models.statement_encoder import OnnxStatementEncoder
from memory.learn.examination import examine
from memory.learn.readers import OffReader, Readers
from memory.learn.reading.exam import StoredExam
from memory.learn.reading.fallback import FallbackReader
from memory.learn.reading.model_reader import ModelReader
from memory.learn.reading.trained import TrainedReader
from memory.ports import StatementReader
from memory.ports.reading import ExamResult, ExamResults
from memory.processes.from_settings import PATIENT_SECONDS, chat_server, model_reader_settings
from memory.runtime.metrics import Metrics
from memory.settings import ExternalModel, ModelEndpoint
from memory.settings.loader import Settings

MODEL_FAILURES_MAX = 2  # slow answers in a row until one at a time is asked: each may cost 30 s
READ_TOKENS_MAX = 1_000  # of an answer of the upstream's own model

log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_readers(settings: Settings, metrics: Metrics) -> AsyncIterator[Readers]:
    """As the settings want it, in the worker and where it is measured. Raises `BadSetting`; no model need be up.

    A model is trusted here without an exam only where the settings say `model` and name one; see `examining`.
    """
    learn, model = settings.memory.learn, settings.model_for("memory_extraction")
    if learn.reader == "off":
        yield Readers(OffReader())
        return
    folder = await asyncio.to_thread(prepared, settings.models_path)
    trained = TrainedReader(await asyncio.to_thread(OnnxStatementEncoder, folder))
    if learn.reader != "model" or model is None:
        yield Readers(trained)
        return
    async with open_model_reader(settings, model, metrics) as reader:
        yield Readers(trained, FallbackReader(reader, trained, metrics=metrics))


@asynccontextmanager
async def open_model_reader(
    settings: Settings, model: ExternalModel, metrics: Metrics, *, endpoint: str = ""
) -> AsyncIterator[ModelReader]:
    """`endpoint`: the base URL where it answers, if not where the model's settings say."""
    server = chat_server(model, priority=settings.memory.extraction.priority, endpoint=endpoint)
    breaker = Breaker("model", failures_max=MODEL_FAILURES_MAX)
    async with OpenAiChatModel(server, metrics=metrics, breaker=breaker) as opened:
        yield ModelReader(opened, model_reader_settings(settings, model), metrics=metrics)


async def examining(settings: Settings, readers: Readers, exams: ExamResults, metrics: Metrics) -> None:
    """Has the model that the settings name, or else the upstream's first one, read once it may. Returns when that is
    clear.

    With `auto` it sits the exam; with `model` it need not. Any other setting asks no model. Whatever goes wrong, the
    trained reader goes on reading.
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
    """Whether the settings want a chat model to read, and have one that may."""
    has_one = settings.model_for("memory_extraction") is not None or bool(settings.upstream)
    return settings.memory.learn.reader in ("auto", "model") and has_one


async def examinee(settings: Settings) -> tuple[ExternalModel, str]:
    """The model that is to read, and the base URL where it answers: the one that is named, or the upstream's first.

    Raises `Unavailable` where the upstream does not list its models.
    """
    named = settings.model_for("memory_extraction")
    if named is not None:
        return named, chat_server(named).endpoint
    model = ExternalModel(
        model_role="memory_extraction",
        llm_endpoint=ModelEndpoint(address=settings.upstream),
        llm_model_name=await first_model(settings.upstream, seconds=PATIENT_SECONDS),
        max_tokens=READ_TOKENS_MAX,
    )
    return model, settings.upstream


__all__ = ["asks_model", "examinee", "examining", "open_model_reader", "open_readers"]
