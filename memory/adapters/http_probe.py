"""Asks servers over HTTP whether they are there, for their keys, and for their time. No text of users is sent."""

from __future__ import annotations

from collections.abc import AsyncIterable
from email.utils import parsedate_to_datetime
from pathlib import Path

import aiohttp
import httpx

from memory.errors import Unavailable

PROBE_SECONDS = 2.0
ANSWER_BYTES_MAX = 1 << 22  # far above Envoy's /clusters with many endpoints


async def answer_of(url: str, *, socket_path: Path | None = None) -> tuple[int, bytes]:
    """Status and body, b"" for one that is too large; (0, b"") if nobody answers in time.

    `socket_path`: of the Unix socket that is asked instead of the host of `url`.
    """
    try:
        async with (
            aiohttp.ClientSession(
                connector=None if socket_path is None else aiohttp.UnixConnector(str(socket_path)),
                timeout=aiohttp.ClientTimeout(total=PROBE_SECONDS),
            ) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            return response.status, await body_of(response.content.iter_any(), bytes_max=ANSWER_BYTES_MAX) or b""
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
        return 0, b""


async def body_of(pieces: AsyncIterable[bytes], *, bytes_max: int) -> bytes | None:
    """The whole of an answer; None if it is larger, and no more of it is read then."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > bytes_max:
            return None
    return bytes(body)


KEY_SET = "the issuer's key set"
KEY_SET_BYTES_MAX = 1 << 20  # a set has a few keys of a few hundred bytes


async def fetched_key_set(url: str, *, seconds: float) -> bytes:
    """The public keys of an issuer of tokens, as they are at that URL; nothing is verified. Raises `Unavailable`.

    Redirects are not followed: Envoy does not either.
    """
    try:
        async with httpx.AsyncClient(timeout=seconds, trust_env=False) as client, client.stream("GET", url) as answer:
            if answer.status_code != 200:
                raise Unavailable(KEY_SET, f"HTTP {answer.status_code} from {url}")
            content = await body_of(answer.aiter_bytes(), bytes_max=KEY_SET_BYTES_MAX)
            if content is None:
                raise Unavailable(KEY_SET, f"more than 1 MiB at {url}")
            return content
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise Unavailable(KEY_SET, f"{type(error).__name__} at {url}") from None


async def date_of(url: str, *, seconds: float) -> float | None:
    """What time a server has, by the header `Date` of any answer: Unix seconds, to the second; None if there is none.

    Raises `Unavailable` if there is no answer.
    """
    try:
        async with httpx.AsyncClient(timeout=seconds, trust_env=False) as client, client.stream("GET", url) as answer:
            return parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise Unavailable("the server's clock", type(error).__name__) from None
    except (KeyError, ValueError):
        return None
