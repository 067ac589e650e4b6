"""Asks an HTTP server what time it has, by the header `Date` of any answer."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import httpx

from memory.errors import Unavailable

PART = "the server's clock"


async def date_of(url: str, *, seconds: float) -> float | None:
    """Unix seconds, to the second; None if its answers have no date. Raises `Unavailable` if there is no answer."""
    try:
        async with httpx.AsyncClient(timeout=seconds, trust_env=False) as client, client.stream("GET", url) as answer:
            return parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise Unavailable(PART, type(error).__name__) from None
    except (KeyError, ValueError):
        return None
