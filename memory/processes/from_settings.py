"""Converts settings into the values of each part. Decides nothing, opens nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from memory.adapters.milvus.connection import MilvusAccess, MilvusAddress
from memory.adapters.models.embedding_model import Card, usual_name
from memory.adapters.models.onnx_embedder import EmbeddingLimits
from memory.adapters.models.openai_chat import ChatServer
from memory.adapters.models.openai_embeddings import EmbeddingServer
from memory.adapters.models.recent_vectors import Prefixes
from memory.adapters.sql.notes import NoteLimits
from memory.adapters.sql.receipts import ReceiptLimits
from memory.api.callers import CallerRules
from memory.api.identity import ServiceToken
from memory.errors import BadSetting
from memory.learn.reading.model_reader import ModelReaderSettings
from memory.learn.reading.prompting import own_examples
from memory.learn.retention import DAY, FADING, Decay, RetentionRules
from memory.learn.worker import WorkerSettings
from memory.model import Placement, Role, VectorOrigin
from memory.model.arms import HoldoutRule
from memory.model.projects import Tenancy
from memory.model.token_claims import ClaimNames
from memory.model.web_pages import TrustedPages
from memory.ports import LearnDue
from memory.recall.notes.profile_notes import ProfileUse
from memory.recall.ranking import needed
from memory.recall.ranking.weights import DEFAULT_RANKING, RankingWeights
from memory.recall.stages import RecallSettings
from memory.recall.working_set.working_sets import WorkingSetLimits
from memory.runtime.offload import pause
from memory.secrets.redaction import SecretPolicy, recordable
from memory.secrets.secret_classes import SecretClass
from memory.sessions.compaction.cuts import TARGET_TOKENS
from memory.settings import EmbeddingSettings, ExternalModel, ServiceTokenSettings, Settings

IDLE_SECONDS_WITH_A_MODEL = 30.0
MODEL_NAME_CHARACTERS = 200  # in `made_by`
TOKENS_AT_ONCE = 4_000  # of a session with a model, answers included: few long turns do not make a long call
PATIENT_SECONDS = 5.0  # limit of a search or an embedding that no chat waits for


def claim_names(settings: Settings) -> ClaimNames:
    jwt = settings.jwt
    return ClaimNames(user=jwt.user_claim, tenant=jwt.tenant_claim, project=jwt.project_claim)


def tenancy(settings: Settings) -> Tenancy:
    return Tenancy(has_tenants=settings.identity == "jwt" and bool(settings.jwt.tenant_claim))


def caller_rules(settings: Settings) -> CallerRules:
    pages = TrustedPages(settings.memory.identity.trusted_origins)
    return CallerRules(claim_names(settings), tuple(map(_service_token, settings.service_tokens)), pages)


def _service_token(token: ServiceTokenSettings) -> ServiceToken:
    users = None if token.any_user else frozenset(token.users)
    return ServiceToken(token.name, bytes.fromhex(token.sha256), frozenset(token.scopes), users)


def ranking_weights(settings: Settings) -> RankingWeights:
    """Raises `BadSetting` for a file that `bench/train_needed.py` of this version did not write."""
    file = needs_file(settings)
    if file is None:
        return replace(DEFAULT_RANKING, needs=needed.packaged())
    try:
        return replace(DEFAULT_RANKING, needs=needed.read(file) if file.exists() else None)
    except (OSError, ValueError) as error:
        advice = "run `bench/train_needed.py --config` again, or remove it: topics alone decide without it"
        raise BadSetting(f"{file}: {error}; {advice}") from error


def needs_file(settings: Settings) -> Path | None:
    """Where `bench/train_needed.py` leaves what it trains for another embedding model; None for the packaged one."""
    model = settings.memory.embedding.model
    name = "".join(character if character.isalnum() else "-" for character in model)
    return None if model == EmbeddingSettings().model else settings.models_path / f"needed-{name}.npz"


def recall_settings(settings: Settings) -> RecallSettings:
    memory = settings.memory
    return RecallSettings(
        is_enabled=memory.enabled,
        deadline_seconds=memory.deadline_ms / 1000,
        token_budget=memory.token_budget,
        retrieval_limit=memory.default_retrieval_limit,
        similarity_threshold=memory.default_similarity_threshold,
        placement=Placement(memory.placement),
        profile=ProfileUse(memory.profile.goes_along) if memory.profile.enabled else None,
        compacts=memory.compaction.enabled,
        compacted_tokens=TARGET_TOKENS,
        is_shadow=memory.shadow.enabled,
        holdout=HoldoutRule(memory.holdout.share, memory.holdout.salt),
        recalls_summaries=memory.has_summaries,
        recalls_answers=memory.store_answers,
        keeps_words=is_recording(settings),
    )


def working_set_limits(settings: Settings) -> WorkingSetLimits:
    working_set = settings.memory.working_set
    return WorkingSetLimits(
        memories_max=working_set.user_memories_max,
        bytes_max=working_set.total_mib << 20,
        patience=working_set.patience_ms / 1000,
    )


def receipt_limits(settings: Settings) -> ReceiptLimits:
    receipts = settings.memory.receipts
    return ReceiptLimits(seconds_max=receipts.keep_days * DAY, total_bytes_max=receipts.total_mib << 20)


def note_limits(settings: Settings) -> NoteLimits:
    return NoteLimits(total_bytes_max=settings.memory.notes.total_mib << 20)


def secret_policy(settings: Settings) -> dict[SecretClass, SecretPolicy]:
    secrets = settings.memory.secrets
    return {
        SecretClass.API_KEY: SecretPolicy(secrets.api_key),
        SecretClass.TOKEN: SecretPolicy(secrets.token),
        SecretClass.PASSWORD: SecretPolicy(secrets.password),
        SecretClass.PRIVATE_KEY: SecretPolicy(secrets.private_key),
        SecretClass.CARD_NUMBER: SecretPolicy(secrets.card_number),
        SecretClass.BANK_ACCOUNT: SecretPolicy(secrets.bank_account),
        SecretClass.NATIONAL_ID: SecretPolicy(secrets.national_id),
    }


def recording(settings: Settings) -> Callable[[str], str]:
    """The redaction of every text before it is stored: turn log, imports through the API, receipts."""
    return partial(recordable, policy=secret_policy(settings), pause=pause)


def is_recording(settings: Settings) -> bool:
    """Whether chats are recorded and learnt from, where neither user nor request says otherwise."""
    memory = settings.memory
    return memory.enabled and memory.auto_store and (memory.shadow.learns or not memory.shadow.enabled)


def worker_settings(settings: Settings) -> WorkerSettings:
    memory, learn = settings.memory, settings.memory.learn
    stored = {Role.USER: memory.store_raw_turns, Role.ASSISTANT: memory.store_answers}
    return WorkerSettings(
        due=learn_due(settings),
        secrets=secret_policy(settings),
        words_of=frozenset(role for role, is_stored in stored.items() if is_stored),
        compares_arms=memory.holdout.share > 0 and not memory.shadow.enabled,
        lease_seconds=learn.lease_seconds,
        retry_seconds_max=learn.retry_max_seconds,
    )


def learn_due(settings: Settings) -> LearnDue:
    """When a session is worth a model's call. With the trained reader, turns are due at once."""
    learn = settings.memory.learn
    idle = IDLE_SECONDS_WITH_A_MODEL if learn.idle_seconds is None else learn.idle_seconds
    if idle == 0:
        return LearnDue()
    turns = settings.memory.extraction_batch_size
    return LearnDue(
        batch_turns_max=turns,
        idle_seconds=min(idle, learn.session_end_seconds),
        turns_at_once=turns,
        tokens_at_once=TOKENS_AT_ONCE,
    )


def retention_rules(settings: Settings) -> RetentionRules:
    """A setting of 0 disables a rule; categories that are not named keep their defaults."""
    life = settings.memory.life
    named: dict[str, Decay] = {
        one.category: Decay(one.half_life_days * DAY or None, one.expires_after_days * DAY or None)
        for one in life.categories or ()
    }
    return RetentionRules(
        quota=life.quota_memories or None, erase_after=life.erase_after_days * DAY or None, fading={**FADING, **named}
    )


def model_reader_settings(settings: Settings, model: ExternalModel) -> ModelReaderSettings:
    """Raises `BadSetting` for an invalid file of examples."""
    extraction = settings.memory.extraction
    return ModelReaderSettings(
        name=model.llm_model_name[:MODEL_NAME_CHARACTERS],
        seconds=model.llm_timeout_seconds,
        max_tokens=model.max_tokens,
        examples=own_examples(extraction.examples),
        topics=extraction.topics,
    )


def chat_server(model: ExternalModel, *, priority: int | None = None, endpoint: str = "") -> ChatServer:
    """The server of that model. `endpoint`: replaces its address, which without a scheme means plain HTTP."""
    address, port = model.llm_endpoint.address, model.llm_endpoint.port
    base = address if "://" in address else f"http://{f'[{address}]' if ':' in address else address}"
    return ChatServer(
        endpoint=endpoint or f"{base.rstrip('/')}:{port}",
        model=model.llm_model_name,
        temperature=model.temperature,
        skips_thinking=model.llm_provider == "vllm",
        priority=priority,
        role=model.model_role,
    )


def embedding_server(settings: Settings, *, is_hurried: bool) -> EmbeddingServer:
    embedding = settings.memory.embedding
    return EmbeddingServer(
        endpoint=embedding.endpoint,
        model=embedding.model,
        dimension=embedding.dimension,
        urgent_seconds=_urgent_seconds(settings, is_hurried=is_hurried),
        prefixes=Prefixes(embedding.query_prefix or "", embedding.document_prefix or ""),
        query_input_type=embedding.query_input_type,
        document_input_type=embedding.document_input_type,
    )


def embedding_limits(settings: Settings, own: Prefixes, *, is_hurried: bool) -> EmbeddingLimits:
    """Limits of the model in this process. `own`: the prefixes that come with it."""
    embedding = settings.memory.embedding
    query, document = embedding.query_prefix, embedding.document_prefix
    return EmbeddingLimits(
        threads=embedding.threads,
        urgent_seconds=_urgent_seconds(settings, is_hurried=is_hurried),
        prefixes=Prefixes(own.query if query is None else query, own.document if document is None else document),
    )


def milvus_address(settings: Settings, origin: VectorOrigin | None) -> MilvusAddress:
    milvus, access = settings.memory.milvus, milvus_access(settings)
    return MilvusAddress(settings.store_uri, milvus.collection, milvus.dimension, origin=origin, access=access)


def milvus_access(settings: Settings) -> MilvusAccess:
    milvus = settings.memory.milvus
    return MilvusAccess(milvus.token, milvus.database, milvus.certificate_authority)


def vector_origin(settings: Settings, card: Card | None = None) -> VectorOrigin:
    """The origin of memory vectors. `card`: of the model in this process; None: a server embeds."""
    embedding = settings.memory.embedding
    prefix = embedding.document_prefix
    if card is None:
        return VectorOrigin(
            usual_name(embedding.model),
            embedding.dimension,
            document_prefix=prefix or "",
            document_input_type=embedding.document_input_type,
        )
    own = card.prompts.get("document", "")
    return VectorOrigin(
        usual_name(embedding.model), card.dimension, card.fingerprint, document_prefix=own if prefix is None else prefix
    )


def _urgent_seconds(settings: Settings, *, is_hurried: bool) -> float:
    return settings.memory.embedding.timeout_ms / 1000 if is_hurried else PATIENT_SECONDS
