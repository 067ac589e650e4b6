"""Asks servers over HTTP whether they are there. No text of users is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

PROBE_SECONDS = 2.0
ANSWER_BYTES_MAX = 1 << 22  # far above Envoy's /clusters with many endpoints


class HttpProbe:
    """Asks over an open session."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def ask(self, url: str, *, socket_path: Path | None = None) -> tuple[int, bytes]:
        """Status and body, b"" for one that is too large; (0, b"") if nobody answers in time.

        `socket_path`: of the Unix socket that is asked instead of the host of `url`.
        """
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                if socket_path is None:
                    return await _answer(self._session, url)
                async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket_path))) as session:
                    return await _answer(session, url)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
            return 0, b""


async def _answer(session: aiohttp.ClientSession, url: str) -> tuple[int, bytes]:
    async with session.get(url, allow_redirects=False) as response:
        return response.status, await body_of(response, bytes_max=ANSWER_BYTES_MAX) or b""


@asynccontextmanager
async def http_probe() -> AsyncIterator[HttpProbe]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        yield HttpProbe(session)


async def body_of(response: aiohttp.ClientResponse, *, bytes_max: int) -> bytes | None:
    """None if it is larger; no more of it is read then."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > bytes_max:
            return None
    return bytes(body)
