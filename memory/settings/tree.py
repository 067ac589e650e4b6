"""All settings in one tree, structured as the configuration file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memory.settings.catalogue import SECRET, SettingDoc, docs_of, without_secrets
from memory.settings.identity import IdentitySettings, JwtSettings, ServiceTokenSettings
from memory.settings.learning import (
    CompactionSettings,
    ExternalModel,
    ExtractionSettings,
    LearnSettings,
    ProfileSettings,
    SecretSettings,
    SummarySettings,
)
from memory.settings.retention import EraseSettings, RetentionSettings
from memory.settings.storage import (
    DatabaseSettings,
    EmbeddingSettings,
    MilvusSettings,
    NoteSettings,
    ReceiptSettings,
    SnapshotSettings,
    TurnLogSettings,
    WorkingSetSettings,
)
from memory.settings.switches import HoldoutSettings, ShadowSettings, TracingSettings, UpstreamSignal

_PORT = Meta(ge=0, le=65535)


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, "Whether memory is searched and injected."] = True
    auto_store: Annotated[bool, "Whether chats are recorded and learnt from."] = True
    store_raw_turns: Annotated[
        bool,
        "Whether what the user said and no memory quotes is stored in the collection as well, for clients that "
        "query it; recall never uses these rows.",
    ] = True
    store_answers: Annotated[
        bool, "Whether what the assistant answered is stored in the collection, for questions about what was said."
    ] = True
    extraction_batch_size: Annotated[
        int,
        Meta(ge=1, le=1000),
        "With a model as the reader, a session is due after this many turns; the trained reader does not wait.",
    ] = 10
    default_retrieval_limit: Annotated[
        Annotated[int, Meta(ge=1, le=200)] | None, "Maximum memories in a note; none: the token budget decides."
    ] = None
    default_similarity_threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        "Minimum cosine of a memory; none: relevance is decided from all features.",
    ] = None
    token_budget: Annotated[int, Meta(ge=1, le=2000), "Maximum tokens of a note, labels included."] = 800
    timezone: Annotated[
        str,
        "The time zone of users whose own is not known, by its name in the IANA's list or its offset: on which day "
        "something was said.",
    ] = "UTC"
    context_length: Annotated[
        int,
        Meta(ge=0, le=100_000_000),
        "Tokens of every model's context window, prompt and answer together; 0: as the upstream tells (vLLM does), "
        "else notes are not bounded by it.",
    ] = 0
    deadline_ms: Annotated[
        int, Meta(ge=1, le=400), "Maximum time that recall may delay a request; Envoy's timeout for the filter is 1 s."
    ] = 120
    filter_in_flight_max: Annotated[
        int,
        Meta(ge=1, le=100_000),
        "Maximum chats that Envoy lets each filter work on concurrently. Further ones continue at once as they "
        "came, without memory, and Envoy counts them.",
    ] = 32
    placement: Annotated[
        Literal["system", "before_last_user", "off"],
        "Where the note goes: into the first system message, before the last user message, nowhere.",
    ] = "before_last_user"
    rewrite: Annotated[
        Literal["off", "vague", "always"],
        "Which questions the `memory_rewrite` model, if configured, rewrites concurrently with the search.",
    ] = "vague"
    hyde: Annotated[bool, "Whether that model also writes a hypothetical answer to be searched for (HyDE)."] = False
    upstream_signals: Annotated[
        tuple[UpstreamSignal, ...] | None,
        "Signals about a request from filters ahead of us; none: those in the table below.",
    ] = None
    milvus: MilvusSettings = MilvusSettings()
    database: DatabaseSettings = DatabaseSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    learn: LearnSettings = LearnSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    life: RetentionSettings = RetentionSettings()
    turn_log: TurnLogSettings = TurnLogSettings()
    working_set: WorkingSetSettings = WorkingSetSettings()
    snapshots: SnapshotSettings = SnapshotSettings()
    receipts: ReceiptSettings = ReceiptSettings()
    notes: NoteSettings = NoteSettings()
    profile: ProfileSettings = ProfileSettings()
    secrets: SecretSettings = SecretSettings()
    compaction: CompactionSettings = CompactionSettings()
    identity: IdentitySettings = IdentitySettings()
    summaries: SummarySettings = SummarySettings()
    erase: EraseSettings = EraseSettings()
    off_routes: Annotated[
        tuple[str, ...],
        "Routes without memory, neither recall nor learning, as `[HOST]/PATH`: the path and all below it, of that "
        "host or of any.",
    ] = ()
    envelopes: Annotated[
        tuple[Annotated[str, Meta(pattern="^-?[A-Za-z0-9_.:-]+$")], ...],
        "Further elements in which clients wrap messages: `NAME` is around the user's own words, `-NAME` around "
        "words of the client.",
    ] = ()
    shadow: ShadowSettings = ShadowSettings()
    holdout: HoldoutSettings = HoldoutSettings()

    @property
    def has_summaries(self) -> bool:
        """Whether sessions are summarised and recalled: not where nobody reads what the user asks to forget."""
        return self.summaries.enabled and self.learn.reader != "off"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The root. Ports may be 0: any free one. Paths are as given, relative to the working directory."""

    upstream: Annotated[str, "URL of the OpenAI-compatible server. Empty: `up` starts a small local model."] = ""
    upstream_keep_alive: Annotated[
        bool,
        "Whether Envoy sends several requests over one connection to the upstream. `false` for servers that close "
        "connections without announcing it, as llama.cpp's does after a streamed answer: a request that meets the "
        "closing gets a 503.",
    ] = True
    host: Annotated[str, "Address that the proxy listens on; beyond loopback not with `identity: development`."] = (
        "127.0.0.1"
    )
    port: Annotated[int, _PORT, "Port of the proxy."] = 8080
    api_host: Annotated[str, "Address that the REST API listens on; containers set 0.0.0.0."] = "127.0.0.1"
    api_port: Annotated[int, _PORT, "Port of the REST API."] = 8081
    envoy_admin_port: Annotated[
        Annotated[int, _PORT] | None,
        "Port of Envoy's admin page, loopback only, where every user of the machine may then end all chats. Unset: "
        "a Unix socket that nobody else can open, where `up` starts Envoy.",
    ] = None
    milvus_port: Annotated[
        Annotated[int, _PORT] | None,
        "Port of our own Milvus Lite, loopback only, where every user of the machine may then read and write all "
        "memories. Unset: a Unix socket that nobody else can open.",
    ] = None
    metrics_port: Annotated[int, _PORT, "Port of the one Prometheus endpoint of all parts."] = 9464
    metrics_host: Annotated[
        str, "Address on which a part that runs alone serves its metrics, on `metrics_port`. Empty: none."
    ] = ""
    milvus_uri: Annotated[str, "URL of a Milvus server. Empty: our own Milvus Lite in `data_dir`."] = ""
    database_url: Annotated[
        str,
        "URL of the PostgreSQL database that holds the turn log and what processes share: "
        "postgresql://HOST:PORT/DATABASE, with several HOST:PORT where another may become the primary. Empty: "
        "SQLite in `data_dir`.",
    ] = ""
    identity: Annotated[
        Literal["development", "header", "jwt"],
        "Who identifies the user: `development` trusts the client, `header` only `trusted_peers`, `jwt` a token "
        "that Envoy verifies.",
    ] = "development"
    jwt: JwtSettings = JwtSettings()
    service_tokens: Annotated[
        tuple[ServiceTokenSettings, ...],
        "Tokens by which programs call the REST API, as hashes; `memproxy token` makes one.",
    ] = ()
    trusted_peers: Annotated[
        tuple[str, ...], "Networks whose x-authz-user-id is trusted in mode `header`, and their signals in each."
    ] = ("127.0.0.0/8", "::1/128")
    data_dir: Annotated[str, "Folder of all persistent data; local disk, one `up` at a time."] = ".memproxy"
    models_dir: Annotated[
        str,
        "Folder of the models converted by `memproxy prepare`; may be shared and deleted. Empty: `memproxy/models` "
        "in the user's cache folder.",
    ] = ""
    reports_dir: Annotated[
        str,
        "Folder of the reports that `memproxy eval --report` writes and the operator's page shows. Empty: `reports` "
        "in `data_dir`.",
    ] = ""
    filters: Annotated[int, Meta(ge=1, le=64), "Filter processes."] = 1
    workers: Annotated[int, Meta(ge=1, le=64), "Worker processes."] = 1
    drain_seconds: Annotated[
        float,
        Meta(ge=0, le=3600),
        "Maximum time that a stopping filter waits for the replies that it observes. Envoy sends it nothing new "
        "meanwhile. Past it, what was said in those replies is not recorded.",
    ] = 60.0
    connections_max: Annotated[
        int,
        Meta(ge=1, le=1_000_000),
        "Maximum connections of clients, and chats that are open at the upstream. Further connections are refused, "
        "further chats answered with 503.",
    ] = 10_000
    tracing: TracingSettings = TracingSettings()
    ports_file: Annotated[str, "Where `up` writes the ports it uses, as JSON, before it is ready."] = ""
    run_dir: Annotated[
        str, "Folder (0700) for the sockets of one run; `up` makes one. Parts run alone must be given it."
    ] = ""
    log_format: Annotated[Literal["text", "json"], "Format of log lines on stderr."] = "text"
    edge_secret: Annotated[
        str,
        SECRET,
        "Secret by which Envoy authenticates to the REST API; from the environment only, new at each start.",
    ] = ""
    token: Annotated[
        str,
        SECRET,
        "Service token by which the commands that call the REST API, and `memproxy mcp`, identify themselves; from "
        "the environment only. Needed outside development.",
    ] = ""
    memory: MemorySettings = MemorySettings()
    external_models: Annotated[
        tuple[ExternalModel, ...], "Chat models by role: memory_extraction, memory_rewrite."
    ] = ()

    def __repr__(self) -> str:
        return f"Settings({without_secrets(self)})"  # so that no log line shows a secret

    @property
    def turn_log_path(self) -> Path:
        return Path(self.data_dir) / "turns.sqlite"

    @property
    def snapshots_dir(self) -> Path:
        return Path(self.data_dir) / "snapshots"

    @property
    def models_path(self) -> Path:
        """The folder of converted models: `models_dir`, or one in the data folder."""
        return Path(self.models_dir) if self.models_dir else Path(self.data_dir) / "models"

    @property
    def reports_path(self) -> Path:
        return Path(self.reports_dir) if self.reports_dir else Path(self.data_dir) / "reports"

    @property
    def milvus_dir(self) -> Path:
        """The data folder of our own Milvus Lite."""
        return Path(self.data_dir) / "milvus"

    @property
    def milvus_uri_file(self) -> Path:
        """The file in which `up` writes the address of its own Milvus Lite while it runs."""
        return Path(self.data_dir) / "milvus.uri"

    @property
    def store_uri(self) -> str:
        """URL of the configured Milvus server, or "" if `up` starts Milvus Lite."""
        named = self.milvus_uri or self.memory.milvus.address
        return named if not named or "://" in named or named.startswith("unix:") else f"http://{named}"

    @property
    def envoy_admin(self) -> int | Path | None:
        """Envoy's admin page: a port of loopback, or a Unix socket in the folder of a run; None outside one."""
        if self.envoy_admin_port is None and self.run_dir:
            return Path(self.run_dir) / "envoy-admin.sock"
        return self.envoy_admin_port

    def model_for(self, role: Literal["memory_extraction", "memory_rewrite"]) -> ExternalModel | None:
        return next((model for model in self.external_models if model.model_role == role), None)


def every_setting() -> Iterator[SettingDoc]:
    """All settings, in the order of the file."""
    return docs_of(Settings)
