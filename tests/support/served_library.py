"""The REST API over a library of a test, on a free port of loopback, in a thread with a loop of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from api_parts import app_of
from library_parts import Parts, library_parts
from served_app import asgi_here, in_own_loop


@contextmanager
def served_library(
    folder: Path,
    fill: Callable[[Parts], Awaitable[object]],
    *,
    identity_mode: str = "development",
    edge_secret: str = "",
) -> Iterator[str]:
    """Its URL. `fill` stores what the test starts with."""

    @asynccontextmanager
    async def filled() -> AsyncIterator[str]:
        async with library_parts(folder) as parts:
            await fill(parts)
            async with asgi_here(app_of(parts.library, identity_mode, edge_secret=edge_secret)) as url:
                yield url

    with in_own_loop(filled()) as (url, _):
        yield url
