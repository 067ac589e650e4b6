"""What the product can be told: every setting with its type, default, limits and meaning.

Only declarations and their catalogue: this module reads nothing, from nowhere. `memory/config.py` does that.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

ENVIRONMENT_PREFIX = "MEMPROXY_"
_PORT = Meta(ge=0, le=65535)


class MilvusSettings(msgspec.Struct, frozen=True, kw_only=True):
    address: Annotated[str, Meta(description="host:port of a Milvus server; `milvus_uri` wins over it.")] = ""
    collection: Annotated[str, Meta(description="Collection that holds the memories.")] = "agentic_memory"
    dimension: Annotated[
        Annotated[int, Meta(ge=1, le=32768)],
        Meta(description="Length of a vector in the collection; the same as `memory.embedding.dimension`."),
    ] = 384


class EmbeddingSettings(msgspec.Struct, frozen=True, kw_only=True):
    model: Annotated[
        str, Meta(description="all-MiniLM-L6-v2 (comes with the package), a folder, or the name at `endpoint`.")
    ] = "all-MiniLM-L6-v2"
    dimension: Annotated[Annotated[int, Meta(ge=1, le=32768)], Meta(description="Length of its vectors.")] = 384
    endpoint: Annotated[
        str,
        Meta(description="Base URL of an OpenAI-compatible /v1/embeddings, or unix:PATH. Empty: our own embedder."),
    ] = ""
    timeout_ms: Annotated[
        Annotated[int, Meta(ge=1, le=60_000)],
        Meta(description="Longest wait for a vector inside a request; learning waits 30 s."),
    ] = 100
    cache_texts: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)],
        Meta(description="Recent texts whose vectors each process keeps; 1.5 KB each."),
    ] = 2048
    threads: Annotated[
        Annotated[int, Meta(ge=0, le=256)],
        Meta(description="Threads of the model; 0 means half of the cores, at least 1."),
    ] = 0


class LearnSettings(msgspec.Struct, frozen=True, kw_only=True):
    retry_attempts: Annotated[
        Annotated[int, Meta(ge=1, le=100)],
        Meta(description="Attempts at one window before it goes to the dead letters."),
    ] = 8
    retry_base_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=3600)], Meta(description="First wait before a retry; it doubles each time.")
    ] = 1.0
    retry_max_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=86_400)], Meta(description="Longest wait between two attempts.")
    ] = 300.0
    lease_seconds: Annotated[
        Annotated[float, Meta(ge=1, le=3600)], Meta(description="How long a silent worker keeps its window.")
    ] = 30.0
    windows_in_flight_max: Annotated[
        Annotated[int, Meta(ge=1, le=64)],
        Meta(description="Windows of different users that one worker learns at a time."),
    ] = 4
    idle_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=86_400)],
        Meta(description="A session is learnt that long after its last turn; 0 means at once (verbatim mode)."),
    ] = 0.0


class TurnLogSettings(msgspec.Struct, frozen=True, kw_only=True):
    synchronous: Annotated[
        Literal["NORMAL", "FULL"],
        Meta(description="NORMAL survives a kill of the process, FULL also a power cut, at one disk sync per commit."),
    ] = "NORMAL"


class UpstreamSignal(msgspec.Struct, frozen=True, kw_only=True):
    """What a filter ahead of us may say about a request: if `name` holds one of `values` (none: any), it `means` that.

    `name` is a header, or `NAMESPACE:KEY` of Envoy's dynamic metadata. A value may be a list with commas; case does not
    count. `search` and `skip` are orders; the others are kinds of messages, which what the user says may overrule.
    """

    name: Annotated[str, Meta(pattern=r"^([A-Za-z0-9_.-]+|[^:\s]+:\S+)$")]
    means: Literal["general_fact", "tool", "greeting", "personal", "task", "smalltalk", "search", "skip"]
    values: tuple[str, ...] = ()


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, Meta(description="Whether chats are searched and given memories.")] = True
    auto_store: Annotated[bool, Meta(description="Whether chats are recorded and learnt from.")] = True
    extraction_batch_size: Annotated[
        Annotated[int, Meta(ge=1, le=1000)],
        Meta(description="A session is due after so many turns where a model extracts; verbatim mode does not wait."),
    ] = 10
    default_retrieval_limit: Annotated[
        Annotated[int, Meta(ge=1, le=200)] | None,
        Meta(description="Most memories in a note; none: the token budget decides."),
    ] = None
    default_similarity_threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Least cosine of a memory; none: relevance is judged from all the evidence."),
    ] = None
    token_budget: Annotated[
        Annotated[int, Meta(ge=1, le=2000)], Meta(description="Most tokens of a note, labels included.")
    ] = 800
    deadline_ms: Annotated[
        Annotated[int, Meta(ge=1, le=400)],
        Meta(description="Most time that recall may hold a request; Envoy gives up on the filter after 1 s."),
    ] = 120
    recall_in_flight_max: Annotated[
        Annotated[int, Meta(ge=1, le=10_000)],
        Meta(description="Recalls at a time in one filter; a request past it goes on without memory, and is counted."),
    ] = 16
    placement: Annotated[
        Literal["system", "before_last_user", "off"],
        Meta(description="Where the note goes: into the first system message, before the last user message, nowhere."),
    ] = "before_last_user"
    rewrite: Annotated[
        Literal["off", "vague", "always"],
        Meta(description="Which questions the `memory_rewrite` model, if there is one, rewrites beside the search."),
    ] = "vague"
    hyde: Annotated[
        bool, Meta(description="Whether that model also writes the memory that it would expect, to be searched for.")
    ] = False
    upstream_signals: Annotated[
        tuple[UpstreamSignal, ...] | None,
        Meta(description="What filters ahead of us may say about a request; none: vLLM Semantic Router and our own."),
    ] = None
    milvus: MilvusSettings = MilvusSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    learn: LearnSettings = LearnSettings()
    turn_log: TurnLogSettings = TurnLogSettings()


class ModelEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    port: Annotated[int, Meta(ge=1, le=65535)] = 8000


class ExternalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A chat model that memory may call, never inside a request's deadline unless it answers in time."""

    model_role: Literal["memory_extraction", "memory_rewrite"]
    llm_endpoint: ModelEndpoint
    llm_model_name: str
    llm_provider: str = "vllm"
    llm_timeout_seconds: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    max_tokens: Annotated[int, Meta(ge=1, le=100_000)] = 500
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.1


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. Ports may be 0: any free one. Paths are as given, relative to the working directory."""

    upstream: Annotated[
        str, Meta(description="URL of the OpenAI-compatible server. Empty: `up` starts a small local model.")
    ] = ""
    host: Annotated[
        str, Meta(description="Address that the proxy listens on; beyond loopback only with `identity: header`.")
    ] = "127.0.0.1"
    port: Annotated[Annotated[int, _PORT], Meta(description="Port of the proxy.")] = 8080
    api_host: Annotated[str, Meta(description="Address that the REST API listens on; containers set 0.0.0.0.")] = (
        "127.0.0.1"
    )
    api_port: Annotated[Annotated[int, _PORT], Meta(description="Port of the REST API.")] = 8081
    envoy_admin_port: Annotated[
        Annotated[int, _PORT], Meta(description="Port of Envoy's admin page, loopback only.")
    ] = 9901
    metrics_port: Annotated[
        Annotated[int, _PORT], Meta(description="Port of the one Prometheus endpoint of all parts.")
    ] = 9464
    metrics_host: Annotated[
        str,
        Meta(description="Where a part that runs alone shows its own metrics, on `metrics_port`. Empty: nowhere."),
    ] = ""
    milvus_uri: Annotated[
        str, Meta(description="URL of a Milvus server. Empty: our own Milvus Lite in `data_dir`.")
    ] = ""
    redis_url: Annotated[str, Meta(description="Reserved: the turn log on Redis. Not built yet, must be empty.")] = ""
    identity: Annotated[
        Literal["development", "header"],
        Meta(description="Who says who the user is: `development` believes the client, `header` only `trusted_peers`."),
    ] = "development"
    trusted_peers: Annotated[
        tuple[str, ...], Meta(description="Networks whose x-authz-user-id is believed in mode `header`.")
    ] = ("127.0.0.0/8", "::1/128")
    data_dir: Annotated[
        str, Meta(description="Folder of everything that must survive; local disk, one `up` at a time.")
    ] = ".memproxy"
    filters: Annotated[Annotated[int, Meta(ge=1, le=64)], Meta(description="Filter processes.")] = 1
    workers: Annotated[Annotated[int, Meta(ge=1, le=64)], Meta(description="Worker processes.")] = 1
    ports_file: Annotated[
        str, Meta(description="Where `up` writes the ports it uses, as JSON, before it is ready.")
    ] = ""
    run_dir: Annotated[
        str,
        Meta(description="Folder (0700) for the sockets of one run; `up` makes one. Parts run alone must be given it."),
    ] = ""
    log_format: Annotated[Literal["text", "json"], Meta(description="How log lines on stderr look.")] = "text"
    edge_secret: Annotated[
        str,
        Meta(
            description="What Envoy proves itself to the REST API with; only from the environment, new at each start.",
            extra={"is_secret": True},
        ),
    ] = ""
    memory: MemorySettings = MemorySettings()
    external_models: Annotated[
        tuple[ExternalModel, ...], Meta(description="Chat models by role: memory_extraction, memory_rewrite.")
    ] = ()

    def __repr__(self) -> str:
        return f"Settings({without_secrets(self)})"  # so that no log line ever shows a secret

    @property
    def turn_log_path(self) -> Path:
        return Path(self.data_dir) / "turns.sqlite"

    @property
    def milvus_dir(self) -> Path:
        """Where our own Milvus Lite keeps its files."""
        return Path(self.data_dir) / "milvus"

    @property
    def embedder_socket(self) -> Path:
        return Path(self.run_dir) / "embedder.sock"

    @property
    def store_uri(self) -> str:
        """URL of the Milvus server that was named, or "" where Milvus Lite is ours to start."""
        named = self.milvus_uri or self.memory.milvus.address
        return named if not named or "://" in named else f"http://{named}"

    def model_for(self, role: Literal["memory_extraction", "memory_rewrite"]) -> ExternalModel | None:
        return next((model for model in self.external_models if model.model_role == role), None)


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """One setting for people: dotted path in the file, its environment variable, what it takes, and what it does."""

    path: str
    environment: str
    type: str
    default: object
    meaning: str
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    doc: SettingDoc
    annotation: Any


def every_setting() -> Iterator[SettingDoc]:
    """All settings, in the order of the file."""
    return (leaf.doc for leaf in leaves_of(Settings, ""))


def without_secrets(settings: Settings) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.to_builtins(settings)
    for doc in every_setting():
        if doc.is_secret:
            del tree[doc.path]
    return tree


def leaves_of(struct: type[msgspec.Struct], prefix: str) -> Iterator[Leaf]:
    hints = typing.get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        annotation, path = hints[field.name], prefix + field.name
        if is_section(annotation):
            yield from leaves_of(annotation, f"{path}.")
            continue
        described: Meta = annotation.__metadata__[-1]
        yield Leaf(
            SettingDoc(
                path=path,
                environment=ENVIRONMENT_PREFIX + path.replace(".", "_").upper(),
                type=_expected(annotation),
                default=field.default,
                meaning=described.description or "",
                is_secret=bool((described.extra or {}).get("is_secret")),
            ),
            annotation,
        )


def is_section(annotation: Any) -> bool:  # noqa: ANN401 - a type annotation may be anything
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def _expected(annotation: Any) -> str:  # noqa: ANN401 - likewise
    """What a setting takes, in words."""
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "nothing"}
    if annotation in words:
        return words[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        inner, meta = _expected(arguments[0]), arguments[1]
        low = meta.ge if meta.ge is not None else meta.gt
        if low is None:
            return inner
        return f"{inner} {'from' if meta.gt is None else 'above'} {low} to {meta.le}"
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple:
        return {str: "a list of text", UpstreamSignal: "a list of signals"}.get(arguments[0], "a list of models")
    return " or ".join(_expected(argument) for argument in arguments)
