"""How much is kept beside the memories: working sets in the filters, receipts and past notes in the turn log's file.

The adapters take their defaults from here, so that each number stands in one place.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class WorkingSetSettings(msgspec.Struct, frozen=True, kw_only=True):
    user_memories_max: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)],
        Meta(
            description="Most memories of one user that a filter holds at hand; with more, each chat searches Milvus. "
            "Laying out 10,000 after a change takes about 50 ms of a thread, which that user's requests wait for."
        ),
    ] = 20_000
    total_mib: Annotated[
        Annotated[int, Meta(ge=1, le=1_048_576)],
        Meta(
            description="Most MiB of all users' memories in one filter, about 4 KB each; past it, the user who was "
            "silent longest makes room."
        ),
    ] = 512
    patience_ms: Annotated[
        Annotated[float, Meta(ge=0, le=400)],
        Meta(
            description="Longest wait of a chat for its user's memories to be loaded or brought up to date, beside the "
            "embedding; with the ranking it must fit `memory.deadline_ms`."
        ),
    ] = 70.0
    search_patience_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=300)],
        Meta(description="The same for a search through the API: as long as a large user's first load takes."),
    ] = 20.0


class SnapshotSettings(msgspec.Struct, frozen=True, kw_only=True):
    total_mib: Annotated[
        Annotated[int, Meta(ge=0, le=16_777_216)],
        Meta(
            description="Most MiB of all users' snapshots in `data_dir`, about 1.4 KB for each memory; past it, those "
            "go that were not used for longest. 0: none; then a user's first question searches Milvus."
        ),
    ] = 4_096


class ReceiptSettings(msgspec.Struct, frozen=True, kw_only=True):
    keep_days: Annotated[
        Annotated[float, Meta(ge=0.001, le=3_650)],
        Meta(description="How long a receipt can be asked for; a week, so that last week's answer can be explained."),
    ] = 7.0
    user_receipts_max: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)],
        Meta(description="Most receipts of one user, the newest; so that one who talks all day crowds out nobody."),
    ] = 1_000
    total_mib: Annotated[
        Annotated[int, Meta(ge=1, le=1_048_576)],
        Meta(description="Most MiB of all receipts on disk; 256 are some 60,000 of the usual 4 KB."),
    ] = 256


class NoteSettings(msgspec.Struct, frozen=True, kw_only=True):
    total_mib: Annotated[
        Annotated[int, Meta(ge=1, le=1_048_576)],
        Meta(
            description="Most MiB of all past notes on disk; 256 are 100,000 of the usual 2.5 KB, by when a model "
            "server's prefix cache has long forgotten the first."
        ),
    ] = 256
    user_mib: Annotated[
        Annotated[int, Meta(ge=1, le=1_048_576)],
        Meta(
            description="Most MiB of one user's past notes: some hundred long conversations. A note that is gone costs "
            "a prompt's prefix, never an answer."
        ),
    ] = 4
