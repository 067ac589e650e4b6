"""Settings, as people write them, turned into the values that each part takes. Decides nothing, opens nothing."""

from __future__ import annotations

from memory.adapters.embeddings import EmbeddingServer
from memory.adapters.openai import ChatServer
from memory.learn.life import DAY, FADING, Fading, LifeRules
from memory.learn.watch import WatchSettings
from memory.learn.worker import WorkerSettings
from memory.model import Placement
from memory.ports import LearnDue
from memory.recall.pipeline import RecallSettings
from memory.settings import ExternalModel, Settings

IDLE_SECONDS_WITH_A_MODEL = 30.0
PATIENT_SECONDS = 5.0  # of a search or an embedding that no chat waits for


def recall_settings(settings: Settings) -> RecallSettings:
    memory = settings.memory
    return RecallSettings(
        is_enabled=memory.enabled,
        deadline_seconds=memory.deadline_ms / 1000,
        in_flight_max=memory.recall_in_flight_max,
        token_budget=memory.token_budget,
        retrieval_limit=memory.default_retrieval_limit,
        similarity_threshold=memory.default_similarity_threshold,
        placement=Placement(memory.placement),
    )


def worker_settings(settings: Settings) -> WorkerSettings:
    learn = settings.memory.learn
    return WorkerSettings(
        due=learn_due(settings),
        watch=WatchSettings(drift_similarity=learn.drift_similarity, queue_turns_max=learn.queue_turns_max),
        windows_at_once=learn.windows_in_flight_max,
        lease_seconds=learn.lease_seconds,
        attempts_max=learn.retry_attempts,
        retry_base_seconds=learn.retry_base_seconds,
        retry_seconds_max=learn.retry_max_seconds,
    )


def learn_due(settings: Settings) -> LearnDue:
    """At once in verbatim mode, which costs no model call; where a model extracts, when a session is worth a call."""
    learn = settings.memory.learn
    has_model = settings.model_for("memory_extraction") is not None
    idle = learn.idle_seconds if learn.idle_seconds is not None else IDLE_SECONDS_WITH_A_MODEL * has_model
    if idle == 0:
        return LearnDue()
    turns = settings.memory.extraction_batch_size
    return LearnDue(
        batch_turns_max=turns,
        idle_seconds=min(idle, learn.session_end_seconds),
        turns_at_once=turns,
        tokens_at_once=learn.buffer_tokens,
    )


def life_rules(settings: Settings) -> LifeRules:
    """Where the settings say 0, a rule is switched off; a category that they do not name ages as it does otherwise."""
    life = settings.memory.life
    named: dict[str, Fading] = {
        one.category: Fading(one.half_life_days * DAY or None, one.expires_after_days * DAY or None)
        for one in life.categories or ()
    }
    return LifeRules(
        quota=life.quota_memories or None,
        floor=life.floor,
        floor_seconds=life.floor_days * DAY,
        erase_after=life.erase_after_days * DAY or None,
        fading={**FADING, **named},
    )


def chat_server(model: ExternalModel) -> ChatServer:
    """Where that model answers. An address may name its scheme; without one it is plain HTTP."""
    address, port = model.llm_endpoint.address, model.llm_endpoint.port
    base = address if "://" in address else f"http://{f'[{address}]' if ':' in address else address}"
    return ChatServer(
        endpoint=f"{base.rstrip('/')}:{port}",
        model=model.llm_model_name,
        temperature=model.temperature,
        skips_thinking=model.llm_provider == "vllm",
    )


def embedding_server(settings: Settings, *, is_hurried: bool) -> EmbeddingServer:
    """Where vectors come from: our own embedder's socket, unless the settings name another server."""
    embedding = settings.memory.embedding
    return EmbeddingServer(
        endpoint=embedding.endpoint or f"unix:{settings.embedder_socket}",
        model=embedding.model,
        dimension=embedding.dimension,
        urgent_seconds=embedding.timeout_ms / 1000 if is_hurried else PATIENT_SECONDS,
        cache_texts=embedding.cache_texts,
    )
