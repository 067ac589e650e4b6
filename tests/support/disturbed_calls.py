"""Calls of parts that fail, or beside which something else happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from memory.errors import Unavailable

Happening = Callable[[], Awaitable[object]]


async def down(*_: object, **__: object) -> Any:
    raise Unavailable("a part", "switched off by the test")


def disturb(
    patch: pytest.MonkeyPatch, part: Any, call: str, *, before: Happening | None = None, after: Happening | None = None
) -> None:
    """At the next such call of the part that happens, before it or after it."""
    whole = getattr(part, call)

    async def disturbed(*arguments: Any, **options: Any) -> Any:
        patch.setattr(part, call, whole)
        if before is not None:
            await before()
        result = await whole(*arguments, **options)
        if after is not None:
            await after()
        return result

    patch.setattr(part, call, disturbed)
