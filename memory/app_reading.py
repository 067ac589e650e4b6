"""The part of the composition root that builds readers: the trained one, a chat model's, and who may read.

As in `app`, adapters are built here and nothing is decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

from memory.adapters.breaker import Breaker
from memory.adapters.openai import OpenAiChatModel, first_model
from memory.adapters.reader_weights import prepared
from memory.adapters.statement_encoder import OnnxStatementEncoder
from memory.config import Settings
from memory.learn.examination import examine
from memory.learn.readers import OffReader, Readers
from memory.learn.reading.exam import StoredExam
from memory.learn.reading.fallback import FallbackReader
from memory.learn.reading.model_reader import ModelReader
from memory.learn.reading.trained import TrainedReader
from memory.metrics import Metrics
from memory.ports import StatementReader
from memory.ports.reading import ExamResult, ExamResults
from memory.settings import ExternalModel, ModelEndpoint
from memory.tuning import PATIENT_SECONDS, asking, chat_server

MODEL_FAILURES_MAX = 2  # slow answers in a row until one at a time is asked: each may cost 30 s
READ_TOKENS_MAX = 1_000  # of an answer of the upstream's own model


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
async def open_model_reader(settings: Settings, model: ExternalModel, metrics: Metrics) -> AsyncIterator[ModelReader]:
    server = chat_server(model, priority=settings.memory.extraction.priority)
    breaker = Breaker("model", failures_max=MODEL_FAILURES_MAX)
    async with OpenAiChatModel(server, metrics=metrics, breaker=breaker) as opened:
        yield ModelReader(opened, asking(settings, model), metrics=metrics)


async def examining(settings: Settings, readers: Readers, exams: ExamResults, metrics: Metrics) -> None:
    """Has the model that the settings name, or else the upstream's first one, read once it may. Returns when that is
    clear.

    With `auto` it sits the exam; with `model` it need not. Any other setting asks no model.
    """
    if settings.memory.learn.reader not in ("auto", "model") or readers.is_slow:
        return
    named = settings.model_for("memory_extraction")
    if named is None and not settings.upstream:
        return
    async with AsyncExitStack() as stack:

        async def sit() -> tuple[StatementReader, ExamResult]:
            model = named or await _upstream_model(settings)
            reader = await stack.enter_async_context(open_model_reader(settings, model, metrics))
            both = FallbackReader(reader, readers.ready, metrics=metrics)
            if settings.memory.learn.reader == "model":
                return both, ExamResult(passed=True, score=1.0)
            server = f"{model.llm_endpoint.address}:{model.llm_endpoint.port}"
            exam = StoredExam(exams, model=model.llm_model_name, server=server)
            return both, await exam.result(reader, reader.prompt_version)

        if await examine(readers, sit, metrics=metrics):
            await asyncio.Event().wait()  # the reader's connections stay open until the worker ends


async def _upstream_model(settings: Settings) -> ExternalModel:
    """Raises `Unavailable` where the upstream does not list its models."""
    url = urlsplit(settings.upstream)
    port = url.port or (443 if url.scheme == "https" else 80)
    return ExternalModel(
        model_role="memory_extraction",
        llm_endpoint=ModelEndpoint(address=f"{url.scheme}://{url.hostname}", port=port),
        llm_model_name=await first_model(settings.upstream, seconds=PATIENT_SECONDS),
        max_tokens=READ_TOKENS_MAX,
    )


__all__ = ["examining", "open_model_reader", "open_readers"]
