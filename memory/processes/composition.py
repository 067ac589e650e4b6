"""The composition root: builds and connects adapters, and owns the system clock and random ids.

Each part (filter, worker, API) opens what it needs; leaving the `async with` closes everything in reverse order. No
decisions are made here.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
from prometheus_client import REGISTRY, CollectorRegistry

from memory.adapters.evaluation_reports import FolderOfReports
from memory.adapters.milvus.reembedding import MilvusReembedding
from memory.adapters.milvus.store import MilvusStore, MilvusTimeouts
from memory.adapters.models import classifier_file
from memory.adapters.models.embedding_model import card_of, prepared
from memory.adapters.models.onnx_embedder import OnnxEmbedder, OnnxModel
from memory.adapters.models.openai_chat import OpenAiChatModel
from memory.adapters.models.openai_embeddings import OpenAiEmbedder
from memory.adapters.models.packaged_encoder import sentence_pieces
from memory.adapters.models.recent_vectors import EmbedderOnDemand
from memory.adapters.models.sentence_pieces import sentence_piece_tokens
from memory.adapters.models.upstream_models import UpstreamModels
from memory.chat.envelopes import Envelopes
from memory.errors import BadSetting
from memory.learn.readers import Readers
from memory.learn.worker import Worker, WorkerSettings
from memory.model import VectorOrigin
from memory.model.zones import Zones
from memory.ports import (
    ChatTemplates,
    Clock,
    Embedder,
    MemoryBank,
    MemoryStore,
    RequestStores,
    ResentHistory,
    Tokens,
    UserLedger,
)
from memory.ports.operators import NO_PARTS, DeploymentParts
from memory.processes.from_settings import (
    PATIENT_SECONDS,
    chat_server,
    embedding_limits,
    embedding_server,
    milvus_address,
    ranking_weights,
    recall_settings,
    recording,
    tenancy,
    vector_origin,
    worker_settings,
)
from memory.processes.kept_state import KeptState, Process
from memory.processes.reader_parts import ExaminedModel, open_writing_model
from memory.processes.state_parts import open_snapshots, open_sql_state
from memory.processes.working_set_parts import opened_sets
from memory.recall.known_windows import KnownWindows
from memory.recall.notes.template_compatibility import TemplateCompatibility
from memory.recall.pipeline import RecallParts, RecallPipeline
from memory.recall.project_access import ReadableProjects
from memory.recall.query import ANSWER_TOKENS, RewriteMode
from memory.recall.query_rewriter import Rewriter, RewriteSettings
from memory.recall.retrieval import Retrieval
from memory.recall.search_flow import SearchParts
from memory.recall.signals.classifier import QuestionClassifier, SignalClassifier
from memory.recall.signals.phrases import question_phrases, training_phrases
from memory.recall.signals.training import ClassifierTraining
from memory.recall.working_set.working_sets import WorkingSets
from memory.runtime.metrics import Metrics, announce
from memory.runtime.tracing import NO_TRACER, Telemetry, Tracer
from memory.service.library import Library
from memory.service.operator import OperatorSources
from memory.service.profiles import ProfileRefresher
from memory.service.reembedding import Migrate, Reembed
from memory.service.requests import Intake
from memory.settings import Settings

SYSTEM_CLOCK: Clock = time.time  # noqa: TID251 - the only use of the system clock
REQUEST_SEARCH_SECONDS = 0.1  # limit of one Milvus search inside a request: below its deadline

log = structlog.get_logger(__name__)


def new_id() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Parts:
    """The open adapters of one process."""

    store: MemoryStore
    corpora: WorkingSets
    embedder: Embedder
    training: ClassifierTraining[SignalClassifier]
    ledger: UserLedger
    state: KeptState
    questions: ClassifierTraining[QuestionClassifier]
    templates: ChatTemplates
    windows: KnownWindows
    rewriter: Rewriter | None
    writing_model: ExaminedModel | None
    tokens: Tokens
    telemetry: Telemetry
    settings: Settings

    @property
    def metrics(self) -> Metrics:
        return self.telemetry.metrics

    @property
    def bank(self) -> MemoryBank:
        return MemoryBank(self.store, self.ledger, self.embedder, self.corpora)

    @property
    def stores(self) -> RequestStores:
        return self.state.stores

    def recall(self, prepare: Callable[[ResentHistory], None] | None = None) -> RecallPipeline:
        """`prepare`: takes long histories for their next states."""
        readable, ranking = ReadableProjects(self.stores.projects), ranking_weights(self.settings)
        search = SearchParts(
            embedder=self.embedder,
            classifier=self.training.current,
            retrieval=Retrieval(corpora=self.corpora, store=self.store, projects=readable, ranking=ranking),
            tokens=self.tokens,
            rewriter=self.rewriter,
            questions=self.questions.current,
        )
        parts = RecallParts(
            search, self.stores, readable, self.state.turn_log.chains, self.windows, self.telemetry, new_id, prepare
        )
        return RecallPipeline(parts, recall_settings(self.settings))

    def template_compatibility(self) -> TemplateCompatibility:
        return TemplateCompatibility(
            model_capabilities=self.state.model_capabilities,
            templates=self.templates,
            clock=self.telemetry.clock,
            metrics=self.telemetry.metrics,
        )

    def library(self, deployment: DeploymentParts = NO_PARTS) -> Library:
        """`deployment`: the other parts, for operators."""
        return Library(
            memories=self.bank,
            turn_log=self.state.turn_log,
            stores=self.stores,
            searcher=self.recall(),
            sources=OperatorSources(FolderOfReports(self.settings.reports_path), deployment),
            intake=Intake(
                self.telemetry.clock,
                new_id,
                recording(self.settings),
                self.tokens,
                session_end_seconds=self.settings.memory.learn.session_end_seconds,
                tenancy=tenancy(self.settings),
                tracer=self.telemetry.tracer,
                zones=Zones(self.settings.memory.timezone),
                envelopes=Envelopes.parsed(self.settings.memory.envelopes),
            ),
        )

    def worker(self, readers: Readers, settings: WorkerSettings | None = None) -> Worker:
        """`settings`: replaces those of the configuration."""
        return Worker(
            turn_log=self.state.turn_log,
            memories=self.bank,
            stores=self.stores,
            readers=readers,
            telemetry=self.telemetry,
            settings=settings or worker_settings(self.settings),
        )

    def profile_refresher(self) -> ProfileRefresher:
        return ProfileRefresher(
            memories=self.bank, profiles=self.stores.profiles, tokens=self.tokens, telemetry=self.telemetry
        )


@asynccontextmanager
async def open_parts(
    settings: Settings, *, is_hurried: bool = False, embeds_rarely: bool = False, traced_as: str = ""
) -> AsyncIterator[Parts]:
    """Everything that a filter, a worker or the API needs. Raises `BadSetting`; no server has to be up.

    `is_hurried`: the process serves chats, so searches and embeddings are limited to the time of a request.
    `embeds_rarely`: the embedding model in this process is loaded when it is needed.
    `traced_as`: the process in traces, and for the doctor; empty: it makes none, and counts as a tool.
    """
    metrics = Metrics(REGISTRY)
    announce(metrics)
    async with AsyncExitStack() as stack:
        tracer = await _open_tracer(settings, stack, part=traced_as)
        opening = partial(open_embedder, settings, metrics, is_hurried=is_hurried)
        embedder = await stack.enter_async_context(
            EmbedderOnDemand(opening, dimension=settings.memory.embedding.dimension) if embeds_rarely else opening()
        )
        origin = await stored_origin(settings)
        timeouts = MilvusTimeouts(search=REQUEST_SEARCH_SECONDS if is_hurried else PATIENT_SECONDS)
        store = MilvusStore(milvus_address(settings, origin), metrics=metrics, timeouts=timeouts)
        await stack.enter_async_context(store)
        telemetry = Telemetry(SYSTEM_CLOCK, metrics, random.random, tracer)
        process = Process(settings, telemetry, is_hurried=is_hurried, part=traced_as)
        yield await open_parts_on(process, stack, store=store, embedder=embedder, origin=origin)


async def _open_tracer(settings: Settings, stack: AsyncExitStack, *, part: str) -> Tracer:
    """`part`: the process, as traces name it; empty: it makes none."""
    tracing = settings.tracing
    if not (tracing.endpoint and part):
        return NO_TRACER
    from memory.adapters.otlp import OtlpTracer  # takes 0.2 s and 20 MB, which few need

    tracer = OtlpTracer(tracing.endpoint, service=f"memproxy-{part}", sample_ratio=tracing.sample_ratio)
    return await stack.enter_async_context(tracer)


@asynccontextmanager
async def open_reembedding(settings: Settings) -> AsyncIterator[Reembed]:
    """The run that embeds all memories again with the configured model. Raises `BadSetting`."""
    metrics = Metrics(CollectorRegistry())
    async with AsyncExitStack() as stack:
        embedder = await stack.enter_async_context(open_embedder(settings, metrics))
        origin = await stored_origin(settings)
        store = await stack.enter_async_context(
            MilvusReembedding(milvus_address(settings, origin), wanted=origin, metrics=metrics)
        )
        snapshots = await stack.enter_async_context(open_snapshots(settings, SYSTEM_CLOCK))
        yield Reembed(store, embedder, snapshots, wanted=origin)


@asynccontextmanager
async def open_migration(settings: Settings) -> AsyncIterator[Migrate]:
    """The run that brings the collection to the present schema and index. Raises `BadSetting`."""
    wanted = await stored_origin(settings)
    address = milvus_address(settings, wanted)
    async with MilvusReembedding(address, wanted=wanted, metrics=Metrics(CollectorRegistry())) as store:
        yield Migrate(store, wanted=wanted)


async def stored_origin(settings: Settings) -> VectorOrigin:
    """The origin of the configured embedder's vectors; its model is converted if necessary."""
    embedding = settings.memory.embedding
    if embedding.endpoint:
        return vector_origin(settings)
    return vector_origin(settings, card_of(await _prepared(settings)))


async def _prepared(settings: Settings) -> Path:
    """The folder of the configured model, which is converted if necessary. Raises `BadSetting`."""
    embedding = settings.memory.embedding
    folder = await asyncio.to_thread(prepared, embedding.model, settings.models_path)
    made = card_of(folder).dimension
    if made != embedding.dimension:
        raise BadSetting(
            f"memory.embedding.dimension is {embedding.dimension}; {embedding.model} makes vectors of {made}"
        )
    return folder


async def open_parts_on(
    process: Process, stack: AsyncExitStack, *, store: MemoryStore, embedder: Embedder, origin: VectorOrigin
) -> Parts:
    """The parts with this store and this embedder; the stack closes them."""
    settings, clock = process.settings, process.telemetry.clock
    pieces = await asyncio.to_thread(sentence_pieces, settings.models_path)
    state, tokens = await open_sql_state(process, stack, origin=origin), sentence_piece_tokens(pieces)
    sets, ledger = await opened_sets(process, stack, store=store, state=state, origin=origin, tokens=tokens)
    upstream = await stack.enter_async_context(UpstreamModels(settings.upstream))
    return Parts(
        store=store,
        corpora=sets,
        embedder=embedder,
        training=signal_training(settings, embedder),
        ledger=ledger,
        state=state,
        questions=question_training(settings, embedder),
        templates=upstream,
        windows=KnownWindows(upstream, clock=clock, fixed=settings.memory.context_length),
        rewriter=await _open_rewriter(settings, stack, process.telemetry.metrics),
        writing_model=await open_writing_model(settings, stack, exams=state.exams, metrics=process.telemetry.metrics),
        tokens=tokens,
        telemetry=process.telemetry,
        settings=settings,
    )


async def _open_rewriter(settings: Settings, stack: AsyncExitStack, metrics: Metrics) -> Rewriter | None:
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


@asynccontextmanager
async def open_library(settings: Settings) -> AsyncIterator[Library]:
    """Only the library, for the operator's tools: of the queue and the record, which need no embedding model."""
    async with open_parts(settings, embeds_rarely=True) as parts:
        yield parts.library()


@asynccontextmanager
async def open_embedder(
    settings: Settings, metrics: Metrics | None = None, *, is_hurried: bool = False
) -> AsyncIterator[Embedder]:
    """The embedder: the configured server, or the model in this process. Raises `BadSetting`.

    Loading takes half a second, and up to 30 s if the model has not been converted (`memproxy prepare`).
    """
    metrics, embedding = metrics or Metrics(CollectorRegistry()), settings.memory.embedding
    if embedding.endpoint:
        async with OpenAiEmbedder(embedding_server(settings, is_hurried=is_hurried), metrics=metrics) as server:
            yield server
        return
    model = await asyncio.to_thread(OnnxModel, await _prepared(settings))
    limits = embedding_limits(settings, model.prefixes, is_hurried=is_hurried)
    async with OnnxEmbedder(model, limits=limits, metrics=metrics) as own:
        yield own


def question_training(settings: Settings, embedder: Embedder) -> ClassifierTraining[QuestionClassifier]:
    shipped = partial(classifier_file.shipped_questions, settings.memory.embedding.model)
    return ClassifierTraining(embedder, QuestionClassifier, shipped=shipped, phrases=question_phrases)


def signal_training(settings: Settings, embedder: Embedder) -> ClassifierTraining[SignalClassifier]:
    shipped = partial(classifier_file.shipped, settings.memory.embedding.model)
    return ClassifierTraining(embedder, SignalClassifier, shipped=shipped, phrases=training_phrases)
