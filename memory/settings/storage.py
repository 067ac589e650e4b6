"""Storage of memories, vectors and turns, and limits of what is stored besides memories.

The adapters take their defaults of the latter from here, so that each number is defined once.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memory.settings.catalogue import SECRET


class MilvusSettings(msgspec.Struct, frozen=True, kw_only=True):
    address: Annotated[str, "host:port of a Milvus server; `milvus_uri` takes precedence."] = ""
    collection: Annotated[
        str,
        Meta(pattern=r"^(?!.*__(?:\d+|live)$)"),
        "Collection that holds the memories. Names that end in __NUMBER or __live belong to `memproxy reembed`.",
    ] = "agentic_memory"
    dimension: Annotated[
        int, Meta(ge=1, le=32768), "Length of a vector in the collection; the same as `memory.embedding.dimension`."
    ] = 384
    token: Annotated[str, SECRET, "`user:password` or API key of a Milvus server; from the environment only."] = ""
    database: Annotated[str, "Database on a Milvus server; empty: its default one."] = ""
    certificate_authority: Annotated[
        str,
        "PEM file that the certificate of a Milvus server with TLS (https://) is verified by; empty: the "
        "authorities of the system.",
    ] = ""


class DatabaseSettings(msgspec.Struct, frozen=True, kw_only=True):
    username: Annotated[str, "Role on the PostgreSQL server; empty: as libpq chooses it."] = ""
    password: Annotated[str, SECRET, "Password of that role; from the environment only."] = ""
    certificate_authority: Annotated[
        str,
        "PEM file that the certificate and the name of the PostgreSQL server are verified by; empty: a server with "
        "TLS is not verified.",
    ] = ""


class EmbeddingSettings(msgspec.Struct, frozen=True, kw_only=True):
    model: Annotated[
        str,
        "multilingual-e5-small (comes with the package), a folder or a hub name of a model for "
        "sentence-transformers, which `memproxy prepare` converts, or the name at `endpoint`.",
    ] = "multilingual-e5-small"
    dimension: Annotated[int, Meta(ge=1, le=32768), "Length of its vectors."] = 384
    endpoint: Annotated[
        str, "Base URL of an OpenAI-compatible /v1/embeddings, or unix:PATH. Empty: each part embeds itself."
    ] = ""
    timeout_ms: Annotated[
        int, Meta(ge=1, le=60_000), "Longest wait for a vector inside a request; learning waits 30 s."
    ] = 100
    threads: Annotated[
        int, Meta(ge=0, le=256), "Texts that each part embeds at a time; 0 means half of the cores, at least 1."
    ] = 0
    query_prefix: Annotated[
        str | None, "Prefix of each question, as E5 and Qwen3-Embedding require. Unset: the model's own."
    ] = None
    document_prefix: Annotated[str | None, "Prefix of each embedded memory. Unset: the model's own."] = None
    query_input_type: Annotated[str, "Sent to `endpoint` as `input_type` with a question; empty sends none."] = ""
    document_input_type: Annotated[str, "Sent to `endpoint` as `input_type` with a memory; empty sends none."] = ""


class TurnLogSettings(msgspec.Struct, frozen=True, kw_only=True):
    synchronous: Annotated[
        Literal["NORMAL", "FULL"],
        "NORMAL survives a crash of the process, FULL also a power failure, with one disk sync per commit. On "
        "PostgreSQL its own `synchronous_commit` says that.",
    ] = "NORMAL"
    keep_days: Annotated[
        float,
        Meta(ge=0, le=36_500),
        "Days that the conversation record is kept: turns that are learnt, their tool traffic, and messages added "
        "by the application. Memories are not affected. 0: for ever.",
    ] = 0.0
    fill_in: Annotated[
        bool, "Whether turns that were missed are recorded and learnt from the history that clients send again."
    ] = True


class WorkingSetSettings(msgspec.Struct, frozen=True, kw_only=True):
    user_memories_max: Annotated[
        int,
        Meta(ge=1, le=1_000_000),
        "Maximum memories of one user in a filter's working set; with more, each chat searches Milvus. Rebuilding "
        "10,000 after a change takes a thread about 50 ms, during which that user's requests wait.",
    ] = 20_000
    total_mib: Annotated[
        int,
        Meta(ge=1, le=1_048_576),
        "Maximum MiB of all users' memories in one filter, about 4 KB each; beyond it, the user who was inactive "
        "longest is evicted.",
    ] = 512
    patience_ms: Annotated[
        float,
        Meta(ge=0, le=400),
        "Longest wait of a chat for its user's memories to be loaded or refreshed, concurrently with the embedding; "
        "with the ranking it must fit `memory.deadline_ms`.",
    ] = 70.0


class SnapshotSettings(msgspec.Struct, frozen=True, kw_only=True):
    total_mib: Annotated[
        int,
        Meta(ge=0, le=16_777_216),
        "Maximum MiB of all users' snapshots, in `data_dir`, or in the database with `database_url`; about 1.4 KB per "
        "memory. Beyond it, the least recently used go. 0: none; a user's first question then searches Milvus.",
    ] = 4_096


class ReceiptSettings(msgspec.Struct, frozen=True, kw_only=True):
    keep_days: Annotated[
        float,
        Meta(ge=0.001, le=3_650),
        "How long a receipt is available; a week, so that last week's answer can be explained.",
    ] = 7.0
    total_mib: Annotated[
        int, Meta(ge=1, le=1_048_576), "Maximum MiB of all receipts on disk; 256 are some 60,000 of the usual 4 KB."
    ] = 256


class NoteSettings(msgspec.Struct, frozen=True, kw_only=True):
    total_mib: Annotated[
        int,
        Meta(ge=1, le=1_048_576),
        "Maximum MiB of all past notes on disk; 256 are 100,000 of the usual 2.5 KB, by which time a model server's "
        "prefix cache has evicted the first.",
    ] = 256
