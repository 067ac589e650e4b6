"""Limits of what is stored besides memories: working sets in the filters, receipts and past notes on disk.

The adapters take their defaults from here, so that each number is defined once.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


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
        "Maximum MiB of all users' snapshots in `data_dir`, about 1.4 KB per memory; beyond it, the least recently "
        "used are deleted. 0: no snapshots; a user's first question then searches Milvus.",
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
