"""How long memories are kept, when unused ones are archived or deleted, and how long an erasure is on record."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memory.model import Category


class CategoryRetention(msgspec.Struct, frozen=True, kw_only=True):
    """How the memories of one category age; 0: not at all."""

    category: Category
    half_life_days: Annotated[float, Meta(ge=0, le=36_500)] = 0.0
    expires_after_days: Annotated[float, Meta(ge=0, le=36_500)] = 0.0


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True):
    every_hours: Annotated[
        float, Meta(ge=0, le=8_760), "Hours between two rounds of upkeep over one user's memories; 0: only by command."
    ] = 24.0
    quota_memories: Annotated[
        int,
        Meta(ge=0, le=10_000_000),
        "Maximum active memories of one user; beyond it the least useful are archived. 0: no limit.",
    ] = 20_000
    erase_after_days: Annotated[
        float, Meta(ge=0, le=36_500), "Memories archived or superseded for this long are deleted permanently; 0: never."
    ] = 0.0
    reflect_from: Annotated[
        int,
        Meta(ge=0, le=1_000),
        "Number of memories of one subject from which a model derives a reflection; 0: never.",
    ] = 0
    categories: Annotated[
        tuple[CategoryRetention, ...] | None, "How the memories of each category age; none: as in the table below."
    ] = None


class EraseSettings(msgspec.Struct, frozen=True, kw_only=True):
    keep_days: Annotated[
        int, Meta(ge=1, le=36_500), "Days for which an erasure is on record after its files were rewritten."
    ] = 90
