"""Fetches the public keys of an issuer of tokens, once, as Envoy does in the background. Verifies nothing."""

from __future__ import annotations

import httpx

from memory.errors import Unavailable

PART = "the issuer's key set"
KEY_SET_BYTES_MAX = 1 << 20  # a set has a few keys of a few hundred bytes


async def fetched_key_set(url: str, *, seconds: float) -> bytes:
    """The document at that URL. Raises `Unavailable`. Redirects are not followed: Envoy does not either."""
    try:
        async with httpx.AsyncClient(timeout=seconds, trust_env=False) as client, client.stream("GET", url) as answer:
            if answer.status_code != 200:
                raise Unavailable(PART, f"HTTP {answer.status_code} from {url}")
            content = b""
            async for chunk in answer.aiter_bytes():
                content += chunk
                if len(content) > KEY_SET_BYTES_MAX:
                    raise Unavailable(PART, f"more than 1 MiB at {url}")
            return content
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise Unavailable(PART, f"{type(error).__name__} at {url}") from None
