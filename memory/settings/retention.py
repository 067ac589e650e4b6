"""How long memories stay, and what becomes of those that are of no use any more."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memory.model import Category


class CategoryRetention(msgspec.Struct, frozen=True, kw_only=True):
    """How the memories of one category age; 0: they do not."""

    category: Category
    half_life_days: Annotated[float, Meta(ge=0, le=36_500)] = 0.0
    expires_after_days: Annotated[float, Meta(ge=0, le=36_500)] = 0.0


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True):
    every_hours: Annotated[
        Annotated[float, Meta(ge=0, le=8_760)],
        Meta(description="Hours between two rounds of upkeep over one user's memories; 0: only by command."),
    ] = 24.0
    quota_memories: Annotated[
        Annotated[int, Meta(ge=0, le=10_000_000)],
        Meta(description="Most active memories of one user; past it the least useful are put away. 0: no limit."),
    ] = 20_000
    floor: Annotated[
        Annotated[float, Meta(ge=0, le=1)],
        Meta(description="Usefulness below which a memory nobody asked for is put away in the end; 0: never."),
    ] = 0.02
    floor_days: Annotated[
        Annotated[float, Meta(ge=0, le=36_500)],
        Meta(description="For so long it must have been below, neither said again nor used."),
    ] = 90.0
    erase_after_days: Annotated[
        Annotated[float, Meta(ge=0, le=36_500)],
        Meta(description="Memories put away or superseded for so long are deleted for good; 0: never."),
    ] = 0.0
    reflect_from: Annotated[
        Annotated[int, Meta(ge=0, le=1_000)],
        Meta(description="Memories about one matter from which a model derives what they share; 0: never."),
    ] = 0
    categories: Annotated[
        tuple[CategoryRetention, ...] | None,
        Meta(description="How the memories of each category age; none: as in the table below."),
    ] = None
