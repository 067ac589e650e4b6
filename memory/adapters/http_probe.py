"""Asks servers over HTTP whether they are there. No text of users is sent."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

import aiohttp

PROBE_SECONDS = 2.0
ANSWER_BYTES_MAX = 1 << 22  # far above Envoy's /clusters with many endpoints


class HttpProbe:
    """Open with `async with`."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, url: str) -> tuple[int, bytes]:
        """Status and body, as far as the limit; (0, b"") if nobody answers in time."""
        assert self._session is not None, "open the probe with `async with`"
        try:
            async with asyncio.timeout(PROBE_SECONDS), self._session.get(url, allow_redirects=False) as response:
                body = bytearray()
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > ANSWER_BYTES_MAX:
                        break
                return response.status, bytes(body)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
            return 0, b""


__all__ = ["HttpProbe"]
