"""A user of whom nothing is remembered, for the compactor."""

from __future__ import annotations

from collections.abc import Collection, Sequence


async def none_held(user_id: str, texts: Sequence[str]) -> Collection[str]:
    return ()
